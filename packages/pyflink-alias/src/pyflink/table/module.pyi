from headrace.table.module import HiveModule as HiveModule
from headrace.table.module import Module as Module
from headrace.table.module import ModuleEntry as ModuleEntry
