"""Keyed state of table operators: rows under 128-bit hashes of their keys, in columns, a slot per row."""
