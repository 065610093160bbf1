from headrace.table.table_pipeline import TablePipeline as TablePipeline
