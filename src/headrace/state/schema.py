"""What was declared about each keyed state, kept with the state itself.

    storage key   group        value: name of every state -> kind, type, ...

Stored values carry no type. So that a program which declares a state otherwise is refused instead of misreading it, and
so that a savepoint can be read without the program, every key group that has state has an entry here. It comes with the
first change of the group, and again when a state is added; most epochs write nothing of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

import msgspec

from headrace.common.typeinfo import BasicType, TypeInformation
from headrace.errors import StateMigrationError
from headrace.state.changes import KEY_GROUP_PREFIX, Column, StateChange
from headrace.state.descriptors import MapStateDescriptor, StateDescriptor
from headrace.state.stores.base import LocalStore

#: The table of what was declared.
SCHEMAS: Final = "_schemas"

SchemaKind = Literal["value", "list", "map", "reducing", "aggregating", "timers", "slices"]

#: Longer descriptions of types are cut: what counts of them is how they begin.
_LONGEST_TYPE: Final = 120
_WIDTHS: Final = {name: width for width, name in enumerate(("BYTE", "SHORT", "INT", "LONG"))}
#: Declared types whose values are the same to Python, and are stored alike.
_FAMILIES: Final = {
    "FLOAT": "DOUBLE",
    "BASIC_ARRAY": "LIST",
    "OBJECT_ARRAY": "LIST",
    "PRIMITIVE_ARRAY": "LIST",
    **dict.fromkeys(_WIDTHS, "LONG"),
}
_PICKLED: Final = "PICKLED_BYTE_ARRAY"
_BYTES: Final = "PRIMITIVE_ARRAY<BYTE>"
#: Types whose values are stored in a form of their own; all others are pickled.
_OWN_FORM: Final = frozenset(
    {
        *(each.name for each in (BasicType.STRING, BasicType.BOOLEAN, BasicType.FLOAT, BasicType.DOUBLE)),
        *_WIDTHS,
        _BYTES,
    }
)


class StateSchema(msgspec.Struct, frozen=True, array_like=True):
    """What was declared about one state."""

    kind: SchemaKind
    #: The type of one stored value, as it prints; None if none was declared.
    type: str | None = None
    #: The type of the keys of a map.
    key_type: str | None = None
    #: Whether it is kept apart per namespace, such as a window.
    has_namespace: bool = False
    #: Whether entries have a time to live, and so carry their time.
    has_ttl: bool = False

    @classmethod
    def of(cls, descriptor: StateDescriptor, *, has_namespace: bool) -> StateSchema:
        """Return what a descriptor says."""
        key_type = descriptor.key_type_info if isinstance(descriptor, MapStateDescriptor) else None
        return cls(
            descriptor.kind,
            type_text(descriptor.type_info),
            type_text(key_type),
            has_namespace,
            descriptor.ttl_config is not None,
        )

    def describe(self) -> str:
        """Return it in words, such as ``map from STRING to LONG``."""
        if self.kind in ("timers", "slices"):
            return self.kind
        if self.kind == "map":
            return f"map from {self.key_type or 'any type'} to {self.type or 'any type'}"
        return f"{self.kind} of {self.type or 'any type'}"


Schemas = dict[str, StateSchema]

_encoder = msgspec.msgpack.Encoder(order="sorted")
_decoder = msgspec.msgpack.Decoder(Schemas)


def encode_schemas(schemas: Schemas) -> bytes:
    """Return an entry of the table."""
    return _encoder.encode(schemas)


def schemas_in(stored: Iterable[bytes]) -> Schemas:
    """Return all states that entries of the table know."""
    found: Schemas = {}
    for entry in dict.fromkeys(stored):
        found.update(_decoder.decode(entry))
    return found


class DeclaredStates:
    """The states one operator subtask declares, held against what is stored and kept with it."""

    def __init__(self) -> None:
        self._store: LocalStore | None = None
        self._declared: Schemas = {}
        self._encoded = b""
        #: Declared, and not held against the store so far.
        self._unchecked: set[str] = set()
        #: Key groups that are known to have the entry.
        self._stored: set[int] = set()
        self._written: set[int] = set()

    def declare(self, name: str, schema: StateSchema) -> None:
        """Add a state.

        Raises:
            StateMigrationError: If something else is stored under its name.
        """
        if self._declared.get(name) == schema:
            return
        self._declared[name] = schema
        self._unchecked.add(name)
        self._encoded = _encoder.encode(self._declared)
        self._stored.clear()
        self._written.clear()
        if self._store is not None:
            self._check(self._store)

    def begin(self, store: LocalStore, *, is_current: bool) -> None:
        self._store = store
        self._written.clear()
        if not is_current:
            self._stored.clear()
        # Once is enough: from then on, what is stored was written under these declarations.
        if self._unchecked:
            self._check(store)

    def add_to(self, change: StateChange) -> None:
        """Put the entries that are missing to the changes of an epoch."""
        touched = {group for column in change.values() for group in column}
        unknown = touched - self._stored
        column: Column = {}
        if unknown:
            read = self._store.reader(SCHEMAS) if self._store is not None else None
            for group in unknown:
                entry = self._entry_after(None if read is None else read(KEY_GROUP_PREFIX[group]))
                if entry is not None:
                    column[group] = ([KEY_GROUP_PREFIX[group]], [entry])
        self._written = touched
        if column:
            change[SCHEMAS] = column

    def settle(self) -> None:
        """The changes are written down."""
        self._stored |= self._written
        self._written = set()

    def _entry_after(self, stored: bytes | None) -> bytes | None:
        """Return what to write where something is stored; None if that says it all."""
        if stored == self._encoded:
            return None
        if stored is None:
            return self._encoded
        # A state that is no longer declared stays where it is, and so does what is known of it.
        known = _decoder.decode(stored)
        merged = known | self._declared
        return _encoder.encode(merged) if merged != known else None

    def _check(self, store: LocalStore) -> None:
        # Key groups may differ: those that were not touched since a state was widened say what it was before.
        for entry in {entry for _, entry in store.scan(SCHEMAS)}:
            stored = _decoder.decode(entry)
            for name in self._unchecked & stored.keys():
                check_schema(name, stored[name], self._declared[name])
        self._unchecked.clear()


def check_schema(name: str, stored: StateSchema, declared: StateSchema) -> None:
    """Refuse a declaration under which what is stored cannot be read.

    Raises:
        StateMigrationError: If the kind differs, or the type in more than that a number is wider.
    """
    if (
        stored.kind == declared.kind
        and stored.has_namespace == declared.has_namespace
        and is_readable_as(
            stored.type, declared.type, is_pickled=stored.kind == "list" and not stored.has_ttl
        )
        and is_readable_as(stored.key_type, declared.key_type, is_pickled=True)
    ):
        return
    raise StateMigrationError(
        f"state '{name}' was written as {stored.describe()}, but is now declared as {declared.describe()}",
        hint="declare it as before, or give it another name to start with empty state. headrace.state_processor reads "
        "and rewrites savepoints if you need to convert values",
        retryable=False,
    )


def is_readable_as(stored: str | None, declared: str | None, *, is_pickled: bool = False) -> bool:
    """Whether values that were stored under one type can be read under another.

    Args:
        stored: The type they were written under, None for any.
        declared: The type they are to be read under.
        is_pickled: Whether they were pickled whatever their type.
    """
    if stored == declared:
        return True
    if is_pickled or not (stored in _OWN_FORM or declared in _OWN_FORM):
        return _is_any(stored) or _is_any(declared) or _family(stored) == _family(declared)
    if stored not in _OWN_FORM or declared not in _OWN_FORM:
        return False
    return _family(stored) == _family(declared) and _WIDTHS.get(stored, 0) <= _WIDTHS.get(declared, 0)


def _is_any(text: str | None) -> bool:
    return text is None or text == _PICKLED


def _family(text: str | None) -> str | None:
    if text is None or text == _BYTES:
        return text
    word = text.partition("<")[0].partition("(")[0]
    return _FAMILIES.get(word, word)


def type_text(type_info: TypeInformation | None) -> str | None:
    """Return how a declared type is written down."""
    if type_info is None:
        return None
    text = type_info.summary()
    return text if len(text) <= _LONGEST_TYPE else text[: _LONGEST_TYPE - 3] + "..."
