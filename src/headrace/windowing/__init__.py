"""Windows by themselves: the windows, and the declarations that assign, trigger and evict.

    record --assigner--> windows --trigger--> fire? --evictor--> contents --window function--> results

Everything here is a picklable value and pure logic over the contexts it is given. It knows neither streams
nor operators: `headrace.datastream.window` has these names as PyFlink does, `headrace.operators.window` runs
them.
"""
