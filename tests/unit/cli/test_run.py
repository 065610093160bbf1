from __future__ import annotations

import gc
import json
import subprocess
import sys
import textwrap

import pytest

from headrace import pyflink_alias
from tests.unit.cli.conftest import JOB
from tests.unit.datastream.fakes import TARGET

DRY = ("-D", f"execution.target={TARGET}")


# --- the program ------------------------------------------------------------------------------------


def test_the_program_runs_as_main_with_its_own_arguments(headrace, program):
    path = program(
        """
        import json, sys
        import helper
        this = sys.modules["__main__"]
        shown = {
            "name": __name__,
            "is main": this.__dict__ is globals(),
            "file": __file__,
            "argv": sys.argv,
            "path": sys.path[0],
            "helper": helper.VALUE,
        }
        print(json.dumps(shown))
        """.replace("        ", "")
    )
    program("VALUE = 7\n", name="helper.py")
    before = sys.argv, sys.path[:], sys.modules["__main__"]

    result = headrace("run", path, "--input", "-p", "3", "--", "-D")

    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout) == {
        "name": "__main__",
        "is main": True,
        "file": str(path),
        "argv": [str(path), "--input", "-p", "3", "--", "-D"],
        "path": str(path.parent),
        "helper": 7,
    }
    assert (sys.argv, sys.path, sys.modules["__main__"]) == before
    sys.modules.pop("helper")


def test_configuration_behind_the_program_belongs_to_it_and_is_warned_of(headrace, program):
    path = program("import sys; print(sys.argv[1:])")
    result = headrace(
        "run", path, "-D", "parallelism.default=3", "-Drest.prt=1", "-Drest.port=7", "-D", "mine"
    )
    assert result.stdout == "['-D', 'parallelism.default=3', '-Drest.prt=1', '-Drest.port=7', '-D', 'mine']\n"
    assert [line.partition(" comes")[0] for line in result.stderr.splitlines() if "warning" in line] == [
        "warning: -D parallelism.default=...",
        "warning: -D rest.port=...",
    ]


def test_flinks_way_of_naming_the_program_works(headrace, program):
    path = program("import sys; print(sys.argv[1:])")

    assert headrace("run", "-py", path, "a", "-b").stdout == "['a', '-b']\n"


def test_a_file_of_sql_is_a_program(headrace, program, jobs):
    path = program(
        """
        -- Two statements about tables, one that shows something, and one that starts a job.
        CREATE TABLE clicks (page STRING) WITH ('connector' = 'datagen', 'number-of-rows' = '3');
        CREATE TABLE sink (page STRING) WITH ('connector' = 'blackhole');
        SHOW TABLES;
        INSERT INTO sink SELECT page FROM clicks;
        """,
        name="job.sql",
    )

    result = headrace("run", *DRY, path)

    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines() == [
        "+------------+",
        "| table name |",
        "+------------+",
        "|     clicks |",
        "|       sink |",
        "+------------+",
        "2 rows in set",
    ]
    assert [job.job_graph.name for job in jobs] == ["insert-into_default_catalog.default_database.sink"]


def test_an_error_in_a_file_of_sql_shows_its_line(headrace, program):
    result = headrace("run", program("SHOW TABLES;\n\nSELECT nope FROM missing;\n", name="job.sql"))

    assert result.exit_code != 0
    assert "3 | SELECT nope FROM missing" in result.stderr


def test_command_line_reaches_the_environment_and_code_is_stronger(headrace, program, jobs):
    path = program(JOB.replace("env.execute", "print(env.get_parallelism()); env.execute"))

    result = headrace("run", *DRY, "-p", "3", "--master", "local[5]", "-D", "pipeline.name=x", path)

    assert result.exit_code == 0, result.stderr
    assert result.stdout == "3\n"
    assert jobs[0].job_graph.name == "word count"
    assert jobs[0].configuration.to_dict()["headrace.spark.master"] == "local[5]"


def test_the_configuration_of_a_run_does_not_outlive_it(headrace, program, jobs):
    headrace("run", *DRY, "-p", "3", program(JOB))

    from headrace.datastream import StreamExecutionEnvironment

    assert StreamExecutionEnvironment.get_execution_environment().get_parallelism() != 3


def test_environments_that_a_program_makes_in_threads_start_from_the_command_line_too(
    headrace, program, jobs
):
    text = JOB.replace("env = ", "import threading\ndef main():\n  env = ").replace("\nenv.", "\n  env.")
    text += "thread = threading.Thread(target=main)\nthread.start()\nthread.join()\n"

    result = headrace("run", *DRY, "-p", "3", program(text))

    assert result.exit_code == 0
    [job] = jobs
    assert max(vertex.parallelism for vertex in job.job_graph.vertices) == 3


# --- what cannot be run -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("missing.py", None, "not found"),
        ("folder", "/", "is a directory; give the path of the program"),
        ("job.jar", "", "is a Java program; headrace runs programs written in Python"),
        ("binary.py", "\0", "null bytes"),
    ],
)
def test_what_is_no_program_is_refused(headrace, tmp_path, name, content, message):
    path = tmp_path / name
    if content == "/":
        path.mkdir()
    elif content is not None:
        path.write_text(content)

    result = headrace("run", path)

    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert message in result.stderr


def test_a_syntax_error_is_shown_with_its_line(headrace, program):
    path = program("env = 1\nenv.map(lambda x: x\n")

    result = headrace("run", path)

    assert result.exit_code == 2
    assert f'File "{path}", line 2' in result.stderr
    assert result.stderr.rstrip().endswith("SyntaxError: '(' was never closed")
    assert "Traceback" not in result.stderr


def test_no_program_at_all_is_wrong_usage(headrace):
    result = headrace("run")

    assert result.exit_code == 2
    assert "give the path of the program" in result.stderr


def test_an_unknown_key_is_refused_before_the_program_runs(headrace, program, tmp_path):
    path = program(f"open({str(tmp_path / 'ran')!r}, 'w')")

    result = headrace("run", "-D", "headrace.epoch.max-recrods=5", path)

    assert result.exit_code == 2
    assert "did you mean 'headrace.epoch.max-records'?" in result.stderr
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--master", "nonsense"), "'nonsense' is not a Spark master"),
        (("-pyfs", "/nowhere/a.py"), "the python file '/nowhere/a.py' does not exist"),
        (("-pyreq", "/nowhere/r.txt#/nowhere/p"), "the requirements file '/nowhere/r.txt' does not exist"),
        (("-pyarch", "/nowhere/a.zip#a"), "the archive '/nowhere/a.zip' does not exist"),
    ],
)
def test_what_cannot_be_sent_along_is_said_before_the_program_runs(headrace, program, options, message):
    result = headrace("run", *options, program("print('begun')"))
    assert result.exit_code == 2
    assert message in result.stderr
    assert "begun" not in result.stdout


def test_a_detached_run_says_at_once_what_is_wrong(headrace, program):
    result = headrace("run", "-d", "no-such-program.py")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "program 'no-such-program.py' not found" in result.stderr
    assert headrace("run", "-d", "-D", "no.such.key=1", program("print('ran')")).exit_code == 2
    assert headrace("run", "-d", "-pyfs", "/nowhere/a.py", program("print('ran')")).exit_code == 2


# --- how it ends ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ending", "code", "message"),
    [
        ("pass", 0, ""),
        ("sys.exit()", 0, ""),
        ("sys.exit(0)", 0, ""),
        ("sys.exit(7)", 7, ""),
        ("sys.exit('no input')", 1, "no input\n"),
        ("raise KeyboardInterrupt", 130, ""),
    ],
)
def test_the_exit_code_is_the_programs_own(headrace, program, ending, code, message):
    result = headrace("run", program(f"import sys\n{ending}\n"))

    assert (result.exit_code, result.stderr) == (code, message)


def test_an_exception_of_the_program_is_shown_with_the_programs_frames_only(headrace, program):
    path = program("def divide(n):\n    return 1 / n\n\ndivide(0)\n")

    result = headrace("run", path)

    assert result.exit_code == 1
    frames = [line for line in result.stderr.splitlines() if line.startswith("  File")]
    assert frames == [f'  File "{path}", line 4, in <module>', f'  File "{path}", line 2, in divide']
    assert result.stderr.startswith("Traceback (most recent call last):")
    assert result.stderr.rstrip().endswith("ZeroDivisionError: division by zero")


def test_causes_of_an_exception_are_shown_alike(headrace, program):
    path = program("try:\n    {}['a']\nexcept KeyError as error:\n    raise ValueError('no a') from error\n")

    result = headrace("run", path)

    assert "The above exception was the direct cause" in result.stderr
    assert str(path) in result.stderr
    assert "headrace/cli" not in result.stderr


def test_a_wrong_definition_is_a_message_with_the_place_in_the_program(headrace, program):
    path = program(JOB.replace("lambda line: line.split()", "3"))

    result = headrace("run", *DRY, path)

    assert result.exit_code == 2
    message, place, *_ = result.stderr.splitlines()
    assert message.startswith("error: flat_map(): expected")
    assert place.startswith(f"  at {path}, line 4: env.from_collection")
    assert "Traceback" not in result.stderr


def test_the_hint_comes_after_the_place(headrace, program):
    path = program("from headrace.datastream.connectors.pulsar import PulsarSource\n")

    lines = headrace("run", path).stderr.splitlines()

    assert lines[0] == "error: pyflink.datastream.connectors.pulsar.PulsarSource is not supported yet"
    assert lines[1].startswith(f"  at {path}, line 1")
    assert lines[2].startswith("hint: ")


def test_what_a_program_catches_is_its_own_affair(headrace, program):
    text = """
        from headrace.datastream import StreamExecutionEnvironment
        from headrace.errors import HeadraceError
        env = StreamExecutionEnvironment.get_execution_environment()
        try:
            env.execute()
        except HeadraceError as error:
            print("caught", type(error).__name__)
        """
    result = headrace("run", *DRY, program(textwrap.dedent(text)))

    assert (result.exit_code, result.stdout) == (0, "caught InvalidTopologyError\n")


# --- signals ----------------------------------------------------------------------------------------


@pytest.fixture
def stops(monkeypatch) -> list[str]:
    """Calls that would stop Spark; it is not ours to stop in this process."""
    from headrace.spark import session

    calls: list[str] = []
    monkeypatch.setattr(session, "stop_spark", lambda: calls.append("stop"))
    return calls


@pytest.mark.parametrize(("signal", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_signal_ends_the_program_and_spark(headrace, program, stops, signal, code):
    path = program(f"import os, signal\nos.kill(os.getpid(), signal.{signal})\nprint('went on')\n")

    result = headrace("run", path)

    assert (result.exit_code, result.stdout, result.stderr) == (code, "", "")
    assert stops == ["stop"]


def test_a_program_that_swallows_ctrl_c_ends_with_its_code_all_the_same(headrace, program, stops):
    text = """
        import os, signal
        try:
            os.kill(os.getpid(), signal.SIGINT)
        except KeyboardInterrupt:
            print("bye")
        """
    result = headrace("run", program(textwrap.dedent(text)))

    assert (result.exit_code, result.stdout) == (130, "bye\n")
    assert stops == ["stop"]


# --- what is imported -------------------------------------------------------------------------------

DEAR = (
    "headrace.spark.executor",
    "headrace.runtime.job.master",
    "headrace.operators.table.factory",
    "pyarrow.compute",
)


def loaded_of_dear(*command: object) -> str:
    """Run a program in a process of its own and return which of the expensive modules it had in the end."""
    return subprocess.run(
        [sys.executable, "-m", "headrace.cli.main", *map(str, command)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


def test_a_client_of_a_session_does_not_import_what_runs_jobs(program):
    path = program(
        f"import sys; import pyflink.datastream; print([name for name in {DEAR!r} if name in sys.modules])"
    )

    assert loaded_of_dear("run", "-m", "localhost:1", path) == "[]"


def test_operators_of_tables_are_not_imported_where_jobs_are_planned():
    script = f"""
import sys, headrace.datastream, headrace.spark.executor, headrace.rest.assembly
print([name for name in {DEAR[2:]!r} if name in sys.modules])
"""
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout

    assert loaded.strip() == "[]"


def test_garbage_is_collected_while_the_program_runs_but_not_among_what_it_imported_before(headrace, program):
    path = program("import gc; print(gc.isenabled(), gc.get_freeze_count() > 10_000)")

    assert headrace("run", path).stdout == "True True\n"
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


# --- pyflink ----------------------------------------------------------------------------------------

PYFLINK = "from pyflink.datastream import DataStream; print(DataStream.__module__)"


def test_programs_may_import_pyflink(headrace, program):
    result = headrace("run", program(PYFLINK))

    assert (result.exit_code, result.stdout) == (0, "headrace.datastream.data_stream\n")
    assert not pyflink_alias.is_installed()


@pytest.mark.parametrize("given", [["--no-pyflink-alias"], ["-D", "headrace.pyflink-alias.enabled=false"]])
def test_the_alias_can_be_switched_off(headrace, program, given):
    result = headrace("run", *given, program(PYFLINK))

    assert result.exit_code == 1
    assert "ModuleNotFoundError: No module named 'pyflink'" in result.stderr


def test_the_switch_is_stronger_than_the_option(headrace, program):
    given = ["-D", "headrace.pyflink-alias.enabled=false", "--pyflink-alias"]

    assert headrace("run", *given, program(PYFLINK)).exit_code == 0


def test_a_missing_module_of_pyflink_is_a_refusal(headrace, program):
    result = headrace("run", program("from pyflink.table.descriptors import Rowtime"))

    assert result.exit_code == 2
    assert result.stderr.startswith("error: pyflink.table.descriptors is not supported yet")
