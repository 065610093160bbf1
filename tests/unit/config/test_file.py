"""Reading headrace.yaml."""

from __future__ import annotations

import pytest

from headrace.config import Configuration, Layer
from headrace.config.file import find_file, read_file
from headrace.config.options.execution import GLOBAL_JOB_PARAMETERS
from headrace.config.options.python import FILES
from headrace.errors import ConfigurationError


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "headrace.yaml"
        path.write_text(text)
        return path

    return write


def test_keys_may_be_dotted_nested_or_both(written):
    path = written(
        """
        # as in Flink
        parallelism.default: 4
        execution:
          checkpointing.interval: 10 s
          checkpointing:
            dir: file:///tmp/c
        """
    )
    assert read_file(path) == {
        "parallelism.default": "4",
        "execution.checkpointing.interval": "10 s",
        "execution.checkpointing.dir": "file:///tmp/c",
    }


def test_scalars_stay_text_for_the_option_to_read(written):
    assert read_file(written("pipeline.name: 007\nrestart-strategy.type: off")) == {
        "pipeline.name": "007",
        "restart-strategy.type": "off",
    }


def test_lists_and_maps_reach_their_options(written):
    path = written("python.files: [a.py, b.py]\npipeline.global-job-parameters:\n  team: clicks\n  a.b: c\n")
    config = Configuration().with_values(read_file(path), layer=Layer.FILE)
    assert config.get(FILES) == ["a.py", "b.py"]
    assert config.get(GLOBAL_JOB_PARAMETERS) == {"team": "clicks", "a.b": "c"}


def test_an_empty_file_sets_nothing(written):
    assert read_file(written("# nothing\n")) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a\n- b", "expected lines such as"),
        ("a: [", "is not valid YAML"),
        ("parallelism.default: 1\nparallelism.default: 2", "occurs twice"),
        ("parallelism.default: 1\nparallelism:\n  default: 2", r"sets 'parallelism\.default' twice"),
        ("!!python/object/apply:os.system ['true']", "expected lines such as"),
    ],
)
def test_a_broken_file_says_what_is_wrong(written, text, message):
    with pytest.raises(ConfigurationError, match=message):
        read_file(written(text))


def test_an_unreadable_file_is_an_error(tmp_path):
    with pytest.raises(ConfigurationError, match="cannot read"):
        read_file(tmp_path / "headrace.yaml")


def test_a_configuration_directory_must_hold_a_file(tmp_path):
    with pytest.raises(ConfigurationError, match=r"there is no headrace\.yaml in it"):
        find_file({"HEADRACE_CONF_DIR": str(tmp_path)})


def test_without_a_file_there_is_none(tmp_path):
    assert find_file({}, tmp_path) is None
