"""The faces of the connectors: PyFlink's modules and names, and what is said about those that are missing."""

from __future__ import annotations

import importlib

import pytest

from headrace.connectors import base, file, sequence
from headrace.datastream import connectors
from headrace.errors import UnsupportedFeatureError


def test_what_is_there_has_pyflinks_names():
    faces = {
        name: importlib.import_module(f"headrace.datastream.connectors.{name}")
        for name in ("base", "file_system", "number_seq")
    }

    assert connectors.Source is faces["base"].Source is base.Source
    assert connectors.DeliveryGuarantee is base.DeliveryGuarantee
    assert faces["number_seq"].NumberSequenceSource is sequence.NumberSequenceSource
    assert faces["file_system"].FileSource is file.FileSource
    assert set(faces["file_system"].__all__) == set(file.__all__)


@pytest.mark.parametrize("module", sorted(connectors._MISSING))
def test_what_is_missing_says_so_when_it_is_imported(module):
    stand_in = importlib.import_module(f"headrace.datastream.connectors.{module}")

    for name in stand_in.__all__:
        message = f"pyflink.datastream.connectors.{module}.{name} is not supported yet"
        with pytest.raises(UnsupportedFeatureError, match=message):
            getattr(stand_in, name)


def test_a_missing_name_is_an_error_of_the_import_statement():
    with pytest.raises(ImportError, match=r"pulsar\.PulsarSource is not supported yet"):
        from headrace.datastream.connectors.pulsar import PulsarSource  # noqa: F401


def test_an_unknown_name_is_an_ordinary_error():
    with pytest.raises(ImportError, match="cannot import name 'KafkaSauce'"):
        from headrace.datastream.connectors.kafka import KafkaSauce  # noqa: F401
