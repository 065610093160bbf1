"""Writes ``flink_functions.json``: what Flink answers to programs with functions in Python.

python tests/parity/make_functions.py        with PyFlink's own environment
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from function_programs import WRONG, Names, environment, final_rows, programs

TARGET = Path(__file__).parent / "flink_functions.json"


def main() -> None:
    """Run all programs on Flink, and write down what comes out."""
    names = Names("pyflink")
    recorded: dict[str, Any] = {}
    for mode in ("streaming", "batch"):
        t_env = environment(names, mode)
        recorded[mode] = {}
        for name, program in programs(names, t_env, mode).items():
            try:
                recorded[mode][name] = final_rows(program().execute())
            except Exception as error:
                recorded[mode][name] = {"error": _first_line(error)}
            print(mode, name, recorded[mode][name], flush=True)
    t_env = environment(names, "streaming")
    recorded["wrong"] = {}
    for name, text in WRONG.items():
        try:
            recorded["wrong"][name] = final_rows(t_env.execute_sql(text))
        except Exception as error:
            recorded["wrong"][name] = {"error": _first_line(error)}
        print(name, recorded["wrong"][name], flush=True)
    TARGET.write_text(json.dumps(recorded, indent=1, ensure_ascii=False) + "\n")


def _first_line(error: Exception) -> str:
    causes = [line for line in str(error).splitlines() if line.startswith("Caused by: ")]
    return (causes[-1] if causes else str(error).splitlines()[0]).removeprefix("Caused by: ")


if __name__ == "__main__":
    main()
