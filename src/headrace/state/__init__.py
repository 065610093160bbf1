"""Keyed and operator state: descriptors, tables, the local store, change files, handles."""
