from __future__ import annotations

import importlib
import pickle
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

import headrace.common.typeinfo
import headrace.datastream.functions
import headrace.metrics
from headrace import pyflink_alias
from headrace.errors import ConfigurationError, UnsupportedFeatureError
from headrace.pyflink_alias import MissingModuleError


@pytest.fixture(autouse=True)
def _alias() -> Iterator[None]:
    pyflink_alias.install()
    yield
    pyflink_alias.uninstall()


@pytest.mark.parametrize(
    "name",
    [
        "common",
        "common.typeinfo",
        "datastream",
        "datastream.functions",
        "datastream.connectors.base",
        "metrics",
    ],
)
def test_modules_are_the_same_objects_under_both_names(name):
    alias = importlib.import_module(f"pyflink.{name}")
    real = importlib.import_module(f"headrace.{name}")

    assert alias is real
    assert sys.modules[f"pyflink.{name}"] is real


def test_modules_keep_their_own_name_and_spec():
    import pyflink.datastream.functions

    module = pyflink.datastream.functions
    assert module.__name__ == module.__spec__.name == "headrace.datastream.functions"
    assert module.__package__ == "headrace.datastream.functions"


def test_all_ways_to_import_work():
    import pyflink
    import pyflink.common as common
    from pyflink.common import Types
    from pyflink.common.typeinfo import Types as SameTypes
    from pyflink.datastream import functions
    from pyflink.datastream.connectors import file_system

    assert Types is SameTypes is headrace.common.typeinfo.Types is common.Types
    assert functions is headrace.datastream.functions is pyflink.datastream.functions
    assert file_system.__name__ == "headrace.datastream.connectors.file_system"


@pytest.mark.parametrize(
    ("statement", "origin"),
    [
        ("from pyflink.datastream.connectors import FileSink, FileSource", "headrace.connectors.file"),
        ("from pyflink.datastream.connectors import KafkaSource, JdbcSink", "headrace.connectors"),
        ("from pyflink.common import JsonRowDeserializationSchema", "headrace.formats.json"),
        ("from pyflink.datastream.window import Time", "headrace.common.time"),
        ("from pyflink.datastream.state import Time", "headrace.common.time"),
        ("from pyflink.datastream.connectors.kafka import DeliveryGuarantee", "headrace.connectors.base"),
        ("from pyflink.table.table_environment import udaf", "headrace.table"),
    ],
)
def test_modules_have_what_pyflinks_import_from_each_other(statement, origin):
    found: dict[str, type] = {}
    exec(statement, found)

    names = [name for name in found if not name.startswith("_")]
    assert names
    assert all(found[name].__module__.startswith(origin) for name in names)


def test_names_of_other_modules_are_gone_with_the_alias():
    import pyflink.datastream.window as window

    assert window.Time
    pyflink_alias.uninstall()

    assert not hasattr(window, "Time")


def test_connectors_are_found_in_their_package_without_the_alias():
    pyflink_alias.uninstall()
    package = importlib.import_module("headrace.datastream.connectors")

    assert package.FileSource is importlib.import_module("headrace.connectors.file").FileSource
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = package.nonsense


def test_packages_have_their_modules():
    import pyflink.datastream as ds

    assert ds.connectors.kafka.KafkaSource is ds.connectors.KafkaSource
    assert ds.formats.json.JsonRowDeserializationSchema
    with pytest.raises(
        MissingModuleError, match=r"pyflink.table.model_descriptor.ModelDescriptor is not supp"
    ):
        from pyflink.table.table_environment import ModelDescriptor  # noqa: F401


def test_the_version_is_that_of_the_pyflink_whose_names_are_there():
    import pyflink
    from pyflink.version import __version__

    assert pyflink.__version__ == pyflink.version.__version__ == __version__ == "2.3.0"


def test_classes_are_pickled_under_headraces_name():
    from pyflink.common import Row

    pickled = pickle.dumps(Row(1, 2))
    pyflink_alias.uninstall()

    assert b"pyflink" not in pickled
    assert pickle.loads(pickled) == headrace.common.Row(1, 2)


@pytest.mark.parametrize(
    "statement",
    [
        "import pyflink.shell",
        "from pyflink import shell",
        "from pyflink.table.descriptors import Rowtime",
        "from pyflink.fn_execution.state_impl import RemovableConcatIterator",
        "from pyflink.java_gateway import get_gateway",
    ],
)
def test_modules_that_are_not_there_yet_say_so(statement):
    with pytest.raises(ModuleNotFoundError, match=r"pyflink\.\S+ is not supported yet") as caught:
        exec(statement)

    assert isinstance(caught.value, UnsupportedFeatureError)
    assert caught.value.name is not None


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("import pyflink.comm", "No module named 'pyflink.comm'"),
        ("import pyflink.datastream.nonsense", "No module named 'pyflink.datastream.nonsense'"),
        ("from pyflink import nonsense", "cannot import name 'nonsense' from 'pyflink'"),
        ("import pyflink.spark", "No module named 'pyflink.spark'"),
        ("import pyflink.runtime.job_master", "No module named 'pyflink.runtime'"),
        ("import pyflinks", "No module named 'pyflinks'"),
    ],
)
def test_names_that_pyflink_does_not_have_are_ordinary_errors(statement, message):
    with pytest.raises(ImportError, match=message) as caught:
        exec(statement)

    assert not isinstance(caught.value, UnsupportedFeatureError)


@pytest.mark.parametrize(
    ("module", "way_round"),
    [
        ("table.descriptors", "TableDescriptor"),
        ("java_gateway", "no Java process"),
        ("shell", "headrace sql"),
    ],
)
def test_modules_that_are_not_there_name_a_way_round(module, way_round):
    with pytest.raises(MissingModuleError) as caught:
        exec(f"import pyflink.{module}")

    assert way_round in str(caught.value.hint)


def test_a_missing_attribute_of_the_package_is_an_ordinary_error():
    import pyflink

    assert not hasattr(pyflink, "nonsense")
    with pytest.raises(MissingModuleError):
        _ = pyflink.shell


def test_programs_that_try_an_import_continue():
    try:
        from pyflink.datastream.connectors.pulsar import PulsarSource
    except ImportError:
        PulsarSource = None

    assert PulsarSource is None


def test_installing_twice_is_harmless_and_one_uninstall_is_enough():
    before = len(sys.meta_path)
    pyflink_alias.install()
    assert len(sys.meta_path) == before

    pyflink_alias.uninstall()
    assert not pyflink_alias.is_installed()
    assert not [name for name in sys.modules if name.partition(".")[0] == "pyflink"]
    with pytest.raises(ModuleNotFoundError, match="No module named 'pyflink'"):
        import pyflink  # noqa: F401


def test_uninstalling_leaves_headraces_modules_in_place():
    import pyflink.metrics

    pyflink_alias.uninstall()

    assert sys.modules["headrace.metrics"] is headrace.metrics is pyflink.metrics


def test_the_real_pyflink_is_not_shadowed_once_it_is_imported(monkeypatch):
    pyflink_alias.uninstall()
    monkeypatch.setitem(sys.modules, "pyflink", ModuleType("pyflink"))

    with pytest.raises(ConfigurationError, match="the real pyflink is imported already"):
        pyflink_alias.install()


def test_an_error_inside_a_module_is_not_taken_for_a_missing_module(monkeypatch):
    monkeypatch.delitem(sys.modules, "headrace.common.input_dependency_constraint")
    monkeypatch.setitem(sys.modules, "enum", None)

    with pytest.raises(ModuleNotFoundError, match="import of enum halted"):
        importlib.import_module("pyflink.common.input_dependency_constraint")


def test_workers_install_the_alias_before_they_load_the_job():
    import pyflink
    from pyspark import cloudpickle

    from headrace.spark import user_code

    content = cloudpickle.dumps((lambda: pyflink.__name__, {}))
    packed = pickle.dumps(([], pyflink_alias.is_installed(), (), content))
    pyflink_alias.uninstall()

    with pytest.raises(AssertionError):  # our function is not a job
        user_code.unpack_job(packed)
    assert pyflink_alias.is_installed()
