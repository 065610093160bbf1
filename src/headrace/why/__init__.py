"""`headrace why`: which input records, epochs and state versions produced an output row.

lineage.py    what a replayed epoch did, as a graph: steps, the records they took, the state they read and wrote
tables.py     notes reads and writes of keyed state
tracking.py   replays an epoch one record at a time, and notes which step sent which record
history.py    follows state back to the epochs that wrote it
answer.py     the answer as plain data
question.py   finds the row that is asked about
text.py       the answer for a terminal
"""
