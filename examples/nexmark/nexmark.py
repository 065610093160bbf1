"""Nexmark: queries over the people, auctions and bids of an online auction, the usual benchmark of streaming SQL.

The statements are in queries/, one file a query, with tables.sql for what they read. Events are made up from a seed.

    headrace run examples/nexmark/nexmark.py q5                       100,000 events, prints the result
    headrace run examples/nexmark/nexmark.py q9 q18 --events 2000000 --sink blackhole
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from string import Template

from headrace.table import EnvironmentSettings, TableEnvironment

HERE = Path(__file__).parent
QUERIES = HERE / "queries"
NAMES = tuple(f"q{number}" for number in range(24))


def statements(name: str, **values: str) -> list[str]:
    """Return the statements of a file, with values put in."""
    text = Template((QUERIES / f"{name}.sql").read_text()).substitute(values)
    lines = [line for line in text.splitlines() if not line.startswith("--")]
    return [each.strip() for each in "\n".join(lines).split(";") if each.strip()]


def run(name: str, events: int, sink: str, seed: int = 1) -> float:
    """Run a query over so many events; returns the seconds it took."""
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    options = f"'events.num' = '{events}', 'seed' = '{seed}'"
    *definitions, insert = [*statements("tables", options=options), *statements(name, sink=sink)]
    for each in definitions:
        t_env.execute_sql(each)
    started = time.perf_counter()
    t_env.execute_sql(insert).wait()
    return time.perf_counter() - started


def main() -> None:
    """Run the queries that the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("queries", nargs="+", choices=NAMES, metavar="QUERY", help="q0 to q23")
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--sink", default="print", help="the connector that gets the result")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    sys.path.append(str(HERE))  # q14 calls a function that is here
    for name in arguments.queries:
        seconds = run(name, arguments.events, arguments.sink, arguments.seed)
        print(f"{name}: {arguments.events / seconds:,.0f} events/s", file=sys.stderr)


if __name__ == "__main__":
    main()
