"""PyFlink's `pyflink.util`: marks of stability, and the exceptions programs may catch by Flink's names."""

from __future__ import annotations
