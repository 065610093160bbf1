from headrace.table.table import AggregatedTable as AggregatedTable
from headrace.table.table import FlatAggregateTable as FlatAggregateTable
from headrace.table.table import GroupWindowedTable as GroupWindowedTable
from headrace.table.table import GroupedTable as GroupedTable
from headrace.table.table import OverWindowedTable as OverWindowedTable
from headrace.table.table import Table as Table
from headrace.table.table import WindowGroupedTable as WindowGroupedTable
