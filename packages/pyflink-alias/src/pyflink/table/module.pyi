from headrace.table.module import ModuleEntry as ModuleEntry
