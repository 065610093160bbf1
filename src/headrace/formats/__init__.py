"""Record formats: how a connector's bytes become rows, and rows bytes.

    bytes --DeserializationSchema--> row        row --SerializationSchema--> bytes

PyFlink's names for them are in `headrace.datastream.formats`. A format knows nothing of where bytes come from;
`dead_letter` is what sources use to read with one and to keep what cannot be read.
"""
