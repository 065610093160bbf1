"""State with a time to live: entries that end some time after they were last written, or read.

    stored     value     time | value                        an entry's time is that of its last access, in ms of
               list      length, time | element | ...        processing time; it has ended when time + ttl <= now,
               map       length, map key | time | value      as in Flink's TtlUtils

A value, a list element and a map entry each have their own time. The tables here are the ordinary ones over pairs of
time and value, so state without a time to live does not pay for this.

Ended entries leave in three ways. One that is met by a read is removed, whether the read still returns it or not;
Flink keeps such elements in a list as long as one of the list lives, which only ReturnExpiredIfNotCleanedUp can tell.
The sweep looks at a few stored entries at every access. And a base that compaction writes is made without them; what
a host has in its own copy stays there until a sweep meets it or the copy is built again. RocksDB's compaction filter
means the same as clean-up in full snapshots, because here the two are one; its parameters have no effect.

Which states have a time to live is itself kept as state, per key group, so that compaction knows it, and so that
state written with it is not read without it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from headrace.common.codec import Codec, value_codec
from headrace.errors import InvariantViolation, StateMigrationError
from headrace.state.changes import KEY_GROUP_BYTES, KEY_GROUP_PREFIX, Column, StateChange, column_of
from headrace.state.entries import KeyScheme, unpack_map_value
from headrace.state.keys import shorten
from headrace.state.sections import Section
from headrace.state.stores.base import LocalStore
from headrace.state.tables import CurrentKey, EntryTable, ListTable, MapTable, StateTable, StoredTable
from headrace.state.ttl_config import StateTtlConfig
from headrace.util import clock

#: How the values of a state are laid out.
Form = Literal["value", "list", "map"]
#: A value and when it was last accessed.
Stamped = tuple[int, Any]
#: What is left of stored bytes without what has ended in them (None: nothing), and the oldest time in it.
Remains = tuple[bytes | None, int]

#: The table of the states with a time to live.
RULES = "_ttl"
#: Later than any clock.
_NEVER = 1 << 63
_TIME = struct.Struct(">q")
_ELEMENT = struct.Struct(">Iq")
_RULE = struct.Struct(">c?q")
_NAME_LIMIT = 200


@dataclass(frozen=True, slots=True)
class TimeToLive:
    """What a StateTtlConfig means here."""

    ttl_ms: int
    #: Milliseconds since the epoch; the task's clock.
    now: Callable[[], int]
    renews_on_read: bool
    returns_expired: bool
    #: How many stored entries are looked at per access; 0 for no sweep.
    cleanup_size: int
    cleans_every_record: bool
    is_pruned_in_bases: bool

    @classmethod
    def of(cls, config: StateTtlConfig, processing_time: Callable[[], int] | None) -> Self:
        """Build the rules from a `StateTtlConfig`."""
        if processing_time is None:
            raise InvariantViolation(
                "keyed state was opened without a clock, which state with a time to live needs",
                hint="pass processing_time= to KeyedStateBackend",
            )
        ways = config.get_cleanup_strategies()
        incremental = ways.get_incremental_cleanup_strategy()
        filters = ways.get_rocksdb_compact_filter_cleanup_strategy() is not None
        return cls(
            ttl_ms=min(config.ttl_ms, _NEVER - 1),
            now=processing_time,
            renews_on_read=config.get_update_type() is StateTtlConfig.UpdateType.OnReadAndWrite,
            returns_expired=(
                config.get_state_visibility() is StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp
            ),
            cleanup_size=0 if incremental is None else incremental.get_cleanup_size(),
            cleans_every_record=incremental is not None and incremental.run_cleanup_for_every_record(),
            is_pruned_in_bases=ways.in_full_snapshot() or filters,
        )


class _TimedTable(StoredTable):
    """A table over pairs of time and value."""

    form: ClassVar[Form]

    def __init__(
        self, name: str, current: CurrentKey, scheme: KeyScheme, type_info: Any, sweep: Sweep
    ) -> None:
        super().__init__(name, current, scheme, type_info)
        stamp = chunk_codec if self.form == "list" else stamped_codec
        self._encode, self._decode = stamp(value_codec(type_info))
        self._ttl = sweep.ttl
        self._sweep = sweep


class TtlEntryTable(_TimedTable, EntryTable):
    """Value, reducing and aggregating state with a time to live."""

    form: ClassVar[Form] = "value"

    def get(self) -> Any:
        now = self._sweep.step()
        stamped = super().get()
        if stamped is None:
            return None
        time_ms, value = stamped
        if time_ms + self._ttl.ttl_ms <= now:
            super().put(None)
            return value if self._ttl.returns_expired else None
        if self._ttl.renews_on_read and time_ms != now:
            super().put((now, value))
        return value

    def put(self, value: Any) -> None:
        now = self._sweep.step()
        super().put(None if value is None else (now, value))

    def settle(self, cache_entries: int) -> None:
        super().settle(cache_entries)
        if self._ttl.returns_expired and self._sweep.found:
            # What was swept is gone, and must not be read from the cache as if it were not.
            limit = self._ttl.now() - self._ttl.ttl_ms
            self._read = {key: kept for key, kept in self._read.items() if kept is None or kept[0] > limit}

    def values(self) -> Iterator[Any]:
        limit = self._ttl.now() - self._ttl.ttl_ms
        for time_ms, value in super().values():
            if time_ms > limit or self._ttl.returns_expired:
                yield value


class TtlListTable(_TimedTable, ListTable):
    """List state in which each element has its own time to live."""

    form: ClassVar[Form] = "list"

    def add_all(self, values: Iterable[Any]) -> None:
        now = self._sweep.step()
        super().add_all([(now, value) for value in values])

    def read(self) -> list[Any]:
        """Return the elements that can be seen; those that have ended are gone after that."""
        now = self._sweep.step()
        elements: list[Stamped] = super().read()
        limit = now - self._ttl.ttl_ms
        alive = [element for element in elements if element[0] > limit]
        seen = [value for _, value in (elements if self._ttl.returns_expired else alive)]
        elements[:] = [(now, value) for _, value in alive] if self._ttl.renews_on_read else alive
        return seen

    def replace(self, values: list[Any]) -> None:
        now = self._sweep.step()
        super().replace([(now, value) for value in values])


class TtlMapTable(_TimedTable, MapTable):
    """Map state in which each entry has its own time to live."""

    form: ClassVar[Form] = "map"

    def get(self, map_key: Any) -> Any:
        stamped = self._accessed(map_key)
        return None if stamped is None else stamped[1]

    def contains(self, map_key: Any) -> bool:
        """Whether the entry can be seen; that is a read, as in Flink."""
        return self._accessed(map_key) is not None

    def put(self, map_key: Any, value: Any) -> None:
        now = self._sweep.step()
        super().put(map_key, (now, value))

    def remove(self, map_key: Any) -> None:
        self._sweep.step()
        super().remove(map_key)

    def clear(self) -> None:
        self._sweep.step()
        for map_key in super().complete():
            super().remove(map_key)

    def complete(self) -> dict[Any, Any]:
        """Return the entries that can be seen, in order; all of them count as read."""
        now = self._sweep.step()
        seen = {}
        for map_key, stamped in super().complete().items():
            if self._checked(map_key, stamped, now) is not None:
                seen[map_key] = stamped[1]
        return seen

    def is_empty(self) -> bool:
        """Whether no entry can be seen. This reads none: nothing is renewed and nothing removed."""
        now = self._sweep.step()
        ttl = self._ttl
        stamps = super().complete().values()
        return not any(ttl.returns_expired or stamped[0] + ttl.ttl_ms > now for stamped in stamps)

    def _accessed(self, map_key: Any) -> Stamped | None:
        now = self._sweep.step()
        stamped: Stamped | None = super().get(map_key)
        return None if stamped is None else self._checked(map_key, stamped, now)

    def _checked(self, map_key: Any, stamped: Stamped, now: int) -> Stamped | None:
        """Return an entry that is read if it can be seen; remove it if it has ended, else renew it."""
        if stamped[0] + self._ttl.ttl_ms <= now:
            super().remove(map_key)
            return stamped if self._ttl.returns_expired else None
        if self._ttl.renews_on_read and stamped[0] != now:
            super().put(map_key, (now, stamped[1]))
        return stamped


class Sweep:
    """Incremental clean-up of one table: rounds over all that is stored, a few entries at every access.

    It reads the store only and knows nothing of what the epoch at work wrote; that is laid over what was found. A round
    also finds the oldest entry that is left, so the next one can wait until there is something to be found.
    """

    def __init__(self, name: str, form: Form, ttl: TimeToLive) -> None:
        self._name = name
        self._prune = _PRUNE[form]
        self.ttl = ttl
        self._store: LocalStore | None = None
        #: What of this epoch's snapshot the round has not seen yet.
        self._entries: Iterator[tuple[bytes, bytes]] | None = None
        #: Storage keys of entries that have ended, wholly or in part, with what is left of each.
        self.found: dict[bytes, bytes | None] = {}
        self._restart()

    def begin(self, store: LocalStore, *, is_current: bool) -> None:
        self._store = store
        self._entries = None
        if not is_current:  # else what an abandoned epoch found is still there, and still to be removed
            self._restart()

    def step(self) -> int:
        """Look at the next few entries, if any can have ended; returns the time."""
        now = self.ttl.now()
        if now >= self._due_ms:
            self._look(now)
        return now

    def lay_under(self, column: Column) -> Column:
        """Return the changes of the table with what was found beneath them."""
        if not self.found:
            return column
        changed = dict(self.found)
        for keys, values in column.values():
            changed.update(zip(keys, values, strict=True))
        return column_of(list(changed), list(changed.values()))

    def settle(self) -> None:
        self.found.clear()
        self._entries = None

    def _restart(self) -> None:
        self.found.clear()
        #: Where the round continues in the next epoch.
        self._position: bytes | None = None
        #: No stored entry is older, as far as the round has come.
        self._oldest = _NEVER
        #: Nothing that is stored ends before.
        self._due_ms = -_NEVER if self.ttl.cleanup_size else _NEVER

    def _look(self, now: int) -> None:
        if self._store is None:
            return
        if self._entries is None:
            self._entries = self._store.scan(self._name, start=self._position)
        # What is written while the round lasts is not older than its beginning.
        self._oldest = min(self._oldest, now)
        limit = now - self.ttl.ttl_ms
        for _ in range(self.ttl.cleanup_size):
            entry = next(self._entries, None)
            if entry is None:
                self._due_ms = self._oldest + self.ttl.ttl_ms
                self._entries = self._position = None
                self._oldest = _NEVER
                return
            self._position, stored = entry
            left, oldest = self._prune(stored, limit)
            self._oldest = min(self._oldest, oldest)
            if left is not stored:
                self.found[self._position] = left


class SweptTable:
    """A table with a time to live and its sweep, which begin, are written down and settle together."""

    def __init__(self, name: str, table: TtlEntryTable | TtlListTable | TtlMapTable, sweep: Sweep) -> None:
        self._name = name
        self.table = table
        self._sweep = sweep

    def begin(self, store: LocalStore, *, is_current: bool) -> None:
        if not is_current:
            require_stored_ttl(store, self._name, self.table.form)
        self.table.begin(store, is_current=is_current)
        self._sweep.begin(store, is_current=is_current)

    def take_changes(self, version: int) -> Column:
        return self._sweep.lay_under(self.table.take_changes(version))

    def settle(self, cache_entries: int) -> None:
        self.table.settle(cache_entries)
        self._sweep.settle()


class TtlRules:
    """Which states have a time to live, as state of its own: an entry per key group and state.

    The entry comes with the first change of an epoch in which the state is declared, and again when its configuration
    has changed. It is there for good: as in Flink, a state cannot have a time to live in one version of a program only.
    """

    def __init__(self, groups: range) -> None:
        self._groups = groups
        self._store: LocalStore | None = None
        #: What should be stored under each state's name.
        self._rules: dict[str, bytes] = {}
        self._is_stored = False

    def declare(self, name: str, form: Form, ttl: TimeToLive) -> None:
        """Register the time to live of a state."""
        self._rules[name] = _RULE.pack(_LETTERS[form], ttl.is_pruned_in_bases, ttl.ttl_ms)
        self._is_stored = False

    def begin(self, store: LocalStore, *, is_current: bool) -> None:
        self._store = store
        if not is_current:
            self._is_stored = False

    def take_changes(self, version: int) -> Column:
        if self._is_stored or self._store is None:
            return {}
        wanted = {
            KEY_GROUP_PREFIX[group] + _rule_name(name): rule
            for name, rule in self._rules.items()
            for group in self._groups
        }
        stored = self._store.reader(RULES)
        changed = {key: rule for key, rule in wanted.items() if stored(key) != rule}
        return column_of(list(changed), list(changed.values()))

    def settle(self, cache_entries: int) -> None:
        self._is_stored = True


def require_stored_ttl(store: LocalStore, name: str, form: Form) -> None:
    """Refuse a state with a time to live if what is stored of it was written without one, or in another form."""
    for storage_key, _ in store.scan(name):
        rule = store.get(RULES, storage_key[:KEY_GROUP_BYTES] + _rule_name(name))
        if rule is None:
            raise _refusal(name, "was written without a time to live, but is now declared with one")
        stored_form = _FORMS[_RULE.unpack(rule)[0]]
        if stored_form != form:
            raise _refusal(name, f"was written as a {stored_form}, but is now declared as a {form}")
        return  # all entries of a state are alike


def refuse_stored_ttl(store: LocalStore, names: Iterable[str]) -> None:
    """Refuse states that are declared without a time to live if they were written with one."""
    ruled = {key[KEY_GROUP_BYTES:] for key, _ in store.scan(RULES)}
    for name in names if ruled else ():
        if _rule_name(name) in ruled:
            raise _refusal(name, "was written with a time to live, but is now declared without one")


def without_expired(state: StateChange, now_ms: int | None = None) -> StateChange:
    """Return a whole state without what has ended in it, where that is asked for.

    Args:
        state: Everything there is at a version, the rules included.
        now_ms: The time; the wall clock's if None.
    """
    rules = {
        key: rule
        for keys, found in state.get(RULES, {}).values()
        for key, rule in zip(keys, found, strict=True)
    }
    if not rules:
        return state
    now = clock.now_ms() if now_ms is None else now_ms
    pruned: StateChange = {}
    for name, column in state.items():
        for group, section in column.items():
            rule = rules.get(KEY_GROUP_PREFIX[group] + _rule_name(name))
            left = section if rule is None else _pruned_section(section, rule, now)
            if left[0]:
                pruned.setdefault(name, {})[group] = left
    return pruned


def on_each_key(current: CurrentKey, call: Callable[[], object]) -> None:
    """Have something called whenever the current key is set, that is for every record.

    Operators set a plain slot and hold on to the object, so the object gets another class: only operators that have
    such a state pay for it.
    """
    kind: Any = type(current)
    slot = kind.key

    def set_key(self: CurrentKey, key: Any) -> None:
        slot.__set__(self, key)
        call()

    members = {"__slots__": (), "key": property(slot.__get__, set_key)}
    current.__class__ = type("ObservedKey", (kind,), members)


def _pruned_section(section: Section, rule: bytes, now: int) -> Section:
    letter, is_pruned, ttl_ms = _RULE.unpack(rule)
    if not is_pruned:
        return section
    prune, limit = _PRUNE[_FORMS[letter]], now - ttl_ms
    left = [(key, prune(value, limit)[0]) for key, value in zip(*section, strict=True) if value is not None]
    kept = [(key, value) for key, value in left if value is not None]
    return [key for key, _ in kept], [value for _, value in kept]


def _refusal(name: str, why: str) -> StateMigrationError:
    return StateMigrationError(
        f"state '{name}' {why}",
        hint="the stored values cannot be read that way; give the state another name to start with empty state",
        retryable=False,
    )


def _rule_name(name: str) -> bytes:
    return shorten(name.encode("utf-8", "surrogatepass"), _NAME_LIMIT)


# -- how it is stored ----------------------------------------------------------------------------------------------


def stamped_codec(codec: Codec) -> Codec:
    """Return the codec of pairs of a time and a value."""
    encode, decode = codec
    pack, unpack_from, size = _TIME.pack, _TIME.unpack_from, _TIME.size

    def encode_stamped(stamped: Stamped) -> bytes:
        return pack(stamped[0]) + encode(stamped[1])

    def decode_stamped(stored: bytes) -> Stamped:
        return unpack_from(stored)[0], decode(stored[size:])

    return encode_stamped, decode_stamped


def chunk_codec(codec: Codec) -> Codec:
    """Return the codec of chunks, whose elements are encoded one by one, so that one can be left out unread."""
    encode, decode = codec

    def encode_chunk(elements: list[Stamped]) -> bytes:
        parts: list[bytes] = []
        for time_ms, value in elements:
            encoded = encode(value)
            parts += (_ELEMENT.pack(len(encoded), time_ms), encoded)
        return b"".join(parts)

    def decode_chunk(stored: bytes) -> list[Stamped]:
        return [(at, decode(stored[start + _ELEMENT.size : end])) for at, start, end in _elements(stored)]

    return encode_chunk, decode_chunk


def _elements(chunk: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield the time of each element of a chunk, and where the element begins and ends."""
    end = 0
    while end < len(chunk):
        start = end
        length, time_ms = _ELEMENT.unpack_from(chunk, start)
        end = start + _ELEMENT.size + length
        yield time_ms, start, end


def _prune_value(stored: bytes, limit: int) -> Remains:
    (time_ms,) = _TIME.unpack_from(stored)
    return (stored, time_ms) if time_ms > limit else (None, _NEVER)


def _prune_map_entry(stored: bytes, limit: int) -> Remains:
    left, oldest = _prune_value(unpack_map_value(stored), limit)
    return (stored if left is not None else None), oldest


def _prune_chunk(stored: bytes, limit: int) -> Remains:
    elements = list(_elements(stored))
    alive = [element for element in elements if element[0] > limit]
    if not alive:
        return None, _NEVER
    oldest = min(alive)[0]
    if len(alive) == len(elements):
        return stored, oldest
    return b"".join(stored[start:end] for _, start, end in alive), oldest


_PRUNE: dict[Form, Callable[[bytes, int], Remains]] = {
    "value": _prune_value,
    "list": _prune_chunk,
    "map": _prune_map_entry,
}
_LETTERS: dict[Form, bytes] = {"value": b"v", "list": b"l", "map": b"m"}
_FORMS: dict[bytes, Form] = {letter: form for form, letter in _LETTERS.items()}

#: The table to take instead where a state has a time to live.
TTL_TABLES: dict[type[StateTable], type[TtlEntryTable | TtlListTable | TtlMapTable]] = {
    EntryTable: TtlEntryTable,
    ListTable: TtlListTable,
    MapTable: TtlMapTable,
}
