"""Keyed state as user functions see it: the five kinds, scoped to the key of the record being processed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from headrace.errors import HeadraceError, StateDescriptorError, StateError
from headrace.state.changes import StateChange
from headrace.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from headrace.state.entries import KeyScheme, NamespacedKeys, PlainKeys
from headrace.state.handles import StateChain
from headrace.state.interfaces import (
    AggregatingState,
    KeyedStateStore,
    ListState,
    MapState,
    ReducingState,
    ValueState,
)
from headrace.state.latency import StateLatency
from headrace.state.schema import DeclaredStates, StateSchema, type_text
from headrace.state.slices import SliceTable
from headrace.state.stores.base import LocalStore
from headrace.state.tables import CurrentKey, EntryTable, ListTable, MapTable, StateTable
from headrace.state.timers import TimerTable
from headrace.state.ttl import (
    RULES,
    TTL_TABLES,
    Sweep,
    SweptTable,
    TimeToLive,
    TtlMapTable,
    TtlRules,
    on_each_key,
    refuse_stored_ttl,
)
from headrace.state.ttl_config import StateTtlConfig


class KeyedValueState(ValueState[Any]):
    """One value per key."""

    def __init__(self, table: EntryTable) -> None:
        self._table = table
        # Instance attributes shadow the methods below: a call less on the hottest path there is.
        self.value = table.get  # type: ignore[method-assign]
        self.update = table.put  # type: ignore[method-assign]

    def value(self) -> Any:
        return self._table.get()

    def update(self, value: Any) -> None:
        self._table.put(value)

    def clear(self) -> None:
        self._table.put(None)


class KeyedListState(ListState[Any]):
    """A list of elements per key."""

    def __init__(self, table: ListTable) -> None:
        self._table = table

    def get(self) -> Iterable[Any]:
        return list(self._table.read())

    def add(self, value: Any) -> None:
        self._table.add_all((value,))

    def add_all(self, values: Iterable[Any]) -> None:
        self._table.add_all(values)

    def update(self, values: Iterable[Any]) -> None:
        self._table.replace(list(values))

    def clear(self) -> None:
        self._table.replace([])

    def __iter__(self) -> Iterator[Any]:
        return iter(self.get())


class KeyedMapState(MapState[Any, Any]):
    """A map per key; iterated in ascending order of its keys."""

    def __init__(self, table: MapTable) -> None:
        self._table = table

    def get(self, key: Any) -> Any:
        return self._table.get(key)

    def put(self, key: Any, value: Any) -> None:
        self._table.put(key, value)

    def put_all(self, dict_value: Mapping[Any, Any] | Iterable[tuple[Any, Any]]) -> None:
        # PyFlink takes pairs where its documentation asks for a dict, so programs pass either.
        for key, value in dict(dict_value).items():
            self._table.put(key, value)

    def remove(self, key: Any) -> None:
        self._table.remove(key)

    def contains(self, key: Any) -> bool:
        return self._table.contains(key)

    def items(self) -> Iterable[tuple[Any, Any]]:
        return self._table.complete().items()

    def keys(self) -> Iterable[Any]:
        return self._table.complete().keys()

    def values(self) -> Iterable[Any]:
        return self._table.complete().values()

    def is_empty(self) -> bool:
        return not self._table.complete()

    def clear(self) -> None:
        self._table.clear()


class TtlMapState(KeyedMapState):
    """A map per key whose entries have a time to live."""

    def __init__(self, table: TtlMapTable) -> None:
        super().__init__(table)
        self.is_empty = table.is_empty  # type: ignore[method-assign]


class KeyedReducingState(ReducingState[Any]):
    """One value per key, into which each added value is reduced."""

    def __init__(self, table: EntryTable, descriptor: ReducingStateDescriptor) -> None:
        self._table = table
        self._reduce = descriptor.get_reduce_function().reduce

    def get(self) -> Any:
        return self._table.get()

    def add(self, value: Any) -> None:
        current = self._table.get()
        self._table.put(value if current is None else self._reduce(current, value))

    def clear(self) -> None:
        self._table.put(None)


class KeyedAggregatingState(AggregatingState[Any, Any]):
    """One accumulator per key, to which each added value is added."""

    def __init__(self, table: EntryTable, descriptor: AggregatingStateDescriptor) -> None:
        self._table = table
        self._function = descriptor.get_agg_function()

    def get(self) -> Any:
        accumulator = self._table.get()
        return None if accumulator is None else self._function.get_result(accumulator)

    def add(self, value: Any) -> None:
        accumulator = self._table.get()
        if accumulator is None:
            accumulator = self._function.create_accumulator()
        self._table.put(self._function.add(value, accumulator))

    def clear(self) -> None:
        self._table.put(None)


class KeyedStateScope(KeyedStateStore):
    """State handles under one key scheme: those of user functions, or those of windows."""

    def __init__(self, tables: TableSet, prefix: str, scheme: KeyScheme) -> None:
        #: The key in whose scope user code runs; set by the operator before every record.
        self.current = CurrentKey()
        self._all_tables = tables
        self._prefix = prefix
        self._scheme = scheme
        self._has_namespace = isinstance(scheme, NamespacedKeys)
        self._states: dict[str, tuple[StateDescriptor, Any]] = {}
        self._entry_tables: list[EntryTable] = []

    def prefetch(self, keys: Collection[Any]) -> None:
        """Tell which keys the next records have, so that their state can be read together."""
        for table in self._entry_tables:
            table.prefetch(keys)

    def get_state(self, state_descriptor: ValueStateDescriptor) -> ValueState[Any]:
        return self._state(state_descriptor, EntryTable, KeyedValueState)  # type: ignore[no-any-return]

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        return self._state(state_descriptor, ListTable, KeyedListState)  # type: ignore[no-any-return]

    def get_map_state(self, state_descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        wrap = KeyedMapState if state_descriptor.ttl_config is None else TtlMapState
        return self._state(state_descriptor, MapTable, wrap)  # type: ignore[no-any-return]

    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor) -> ReducingState[Any]:
        return self._state(  # type: ignore[no-any-return]
            state_descriptor, EntryTable, lambda table: KeyedReducingState(table, state_descriptor)
        )

    def get_aggregating_state(
        self, state_descriptor: AggregatingStateDescriptor
    ) -> AggregatingState[Any, Any]:
        return self._state(  # type: ignore[no-any-return]
            state_descriptor, EntryTable, lambda table: KeyedAggregatingState(table, state_descriptor)
        )

    def entry_table(self, name: str, type_info: Any = None) -> EntryTable:
        """Return the table of an operator's own state, for operators that need more than a user sees."""
        self._declare(name, StateSchema("value", type_text(type_info), has_namespace=self._has_namespace))
        return self._table(name, EntryTable, type_info)  # type: ignore[no-any-return]

    def list_table(self, name: str) -> ListTable:
        """Return the table of an operator's own list state."""
        self._declare(name, StateSchema("list", has_namespace=self._has_namespace))
        return self._table(name, ListTable, None)  # type: ignore[no-any-return]

    def _state(self, descriptor: StateDescriptor, table_type: Any, wrap: Any) -> Any:
        known = self._states.get(descriptor.name)
        if known is not None:
            if known[0].kind != descriptor.kind:
                raise StateDescriptorError(
                    f"state '{descriptor.name}' is declared both as {known[0].kind} and as {descriptor.kind}",
                    hint="give each state of a function its own name",
                )
            if (known[0].ttl_config is None) != (descriptor.ttl_config is None):
                raise StateDescriptorError(
                    f"state '{descriptor.name}' is declared both with and without a time to live"
                )
            return known[1]
        if descriptor.ttl_config is not None:
            table = self._ttl_table(descriptor, descriptor.ttl_config, TTL_TABLES[table_type])
        else:
            self._all_tables.expect_no_ttl(self._prefix + descriptor.name)
            table = self._table(descriptor.name, table_type, descriptor.type_info)
        self._declare(descriptor.name, StateSchema.of(descriptor, has_namespace=self._has_namespace))
        state = wrap(table)
        if self._all_tables.latency is not None:
            self._all_tables.latency.measure(descriptor.kind, descriptor.name, state)
        self._states[descriptor.name] = (descriptor, state)
        return state

    def _declare(self, name: str, schema: StateSchema) -> None:
        self._all_tables.declared.declare(self._prefix + name, schema)

    def _table(self, name: str, table_type: Any, type_info: Any) -> Any:
        full_name = self._prefix + name
        table = self._all_tables.get(
            full_name, lambda: table_type(full_name, self.current, self._scheme, type_info)
        )
        if isinstance(table, EntryTable) and table not in self._entry_tables:
            self._entry_tables.append(table)
        return table

    def _ttl_table(self, descriptor: StateDescriptor, config: StateTtlConfig, table_type: Any) -> Any:
        name = self._prefix + descriptor.name
        ttl = TimeToLive.of(config, self._all_tables.processing_time)

        def make() -> SweptTable:
            sweep = Sweep(name, table_type.form, ttl)
            if ttl.cleans_every_record:
                on_each_key(self.current, sweep.step)
            table = table_type(name, self.current, self._scheme, descriptor.type_info, sweep)
            return SweptTable(name, table, sweep)

        swept: Any = self._all_tables.get(name, make)
        self._all_tables.rules().declare(name, table_type.form, ttl)
        return swept.table


class TableSet:
    """The tables of one operator subtask, made on first use."""

    def __init__(
        self,
        store: LocalStore,
        groups: range,
        processing_time: Callable[[], int] | None,
        latency: StateLatency | None = None,
    ) -> None:
        self._store = store
        self._groups = groups
        #: Given if accesses are measured.
        self.latency = latency
        #: The clock of state with a time to live.
        self.processing_time = processing_time
        self.by_name: dict[str, StateTable] = {}
        #: Called with the name of each table that is made, and the table.
        self.on_table: Callable[[str, StateTable], None] | None = None
        #: What is declared about them.
        self.declared = DeclaredStates()
        #: The states of user functions that have no time to live.
        self._lasting: set[str] = set()

    def get(self, name: str, make: Callable[[], StateTable]) -> StateTable:
        """Return a table; one first asked for in the middle of an epoch starts there."""
        table = self.by_name.get(name)
        if table is None:
            table = make()
            table.begin(self._store, is_current=False)
            self.by_name[name] = table
            if self.on_table is not None:
                self.on_table(name, table)
        return table

    def rules(self) -> TtlRules:
        """Return the table of the states with a time to live."""
        return self.get(RULES, lambda: TtlRules(self._groups))  # type: ignore[return-value]

    def expect_no_ttl(self, name: str) -> None:
        """Refuse a state if it was written with a time to live, now or when it turns out."""
        refuse_stored_ttl(self._store, (name,))
        self._lasting.add(name)

    def begin(self, *, is_current: bool) -> None:
        if not is_current:
            refuse_stored_ttl(self._store, self._lasting)
        self.declared.begin(self._store, is_current=is_current)
        for table in self.by_name.values():
            table.begin(self._store, is_current=is_current)


class KeyedStateBackend(KeyedStateScope):
    """All keyed state of one operator subtask, for as long as a worker keeps the subtask."""

    def __init__(
        self,
        store: LocalStore,
        groups: range,
        max_parallelism: int,
        cache_entries: int,
        *,
        processing_time: Callable[[], int] | None = None,
        latency: StateLatency | None = None,
    ) -> None:
        self._store = store
        self._tables = TableSet(store, groups, processing_time, latency)
        super().__init__(self._tables, "", PlainKeys(max_parallelism))
        self.max_parallelism = max_parallelism
        self.groups = groups
        self._cache_entries = cache_entries
        #: The tip of the chain that the decoded objects belong to.
        self._tip: str | None = None

    def watch_tables(self, on_table: Callable[[str, StateTable], None]) -> None:
        """Have a function called with each table when it is made; before the operator is opened."""
        self._tables.on_table = on_table

    def begin_epoch(self, chain: StateChain) -> None:
        """Go to the version an epoch starts from."""
        self._store.catch_up(chain, self.groups)
        self._tables.begin(is_current=self._tip == chain.tip)
        self._tip = chain.tip

    def take_changes(self, version: int) -> StateChange:
        """Return what the epoch changed, to be written down as ``version``."""
        changes = {}
        for name, table in self._tables.by_name.items():
            try:
                column = table.take_changes(version)
            except HeadraceError:
                raise
            except Exception as error:  # a value's own __reduce__ may raise anything
                raise StateError(
                    f"state '{name}': cannot store a value: {type(error).__name__}: {error}",
                    hint="values in state must be picklable: use plain data, or classes defined at module level",
                ) from error
            if column:
                changes[name] = column
        self._tables.declared.add_to(changes)
        return changes

    def settle(self, tip: str) -> None:
        """The changes were written as ``tip``: what is decoded belongs to it if it is committed."""
        for table in self._tables.by_name.values():
            table.settle(self._cache_entries)
        self._tables.declared.settle()
        self._store.release()
        self._tip = tip

    def close(self) -> None:
        self._store.close()

    def namespaced(self, prefix: str, encode_namespace: Callable[[Any], bytes]) -> KeyedStateScope:
        """Return a scope whose current key is a pair of a key and a namespace, such as a window."""
        scheme = NamespacedKeys(self.max_parallelism, encode_namespace)
        return KeyedStateScope(self._tables, prefix, scheme)

    def slices(self, name: str, *, name_size: int) -> SliceTable:
        """Return a table of slices, whose names have this many bytes."""
        self._declare(name, StateSchema("slices", has_namespace=True))
        return self._tables.get(  # type: ignore[return-value]
            name, lambda: SliceTable(name, self.groups, self.max_parallelism, name_size=name_size)
        )

    def timers(self, name: str, encode_namespace: Callable[[Any], bytes]) -> TimerTable:
        """Return the timers of an operator, by name."""
        self._declare(name, StateSchema("timers", has_namespace=True))
        return self._tables.get(  # type: ignore[return-value]
            name, lambda: TimerTable(name, self.groups, self.max_parallelism, encode_namespace)
        )
