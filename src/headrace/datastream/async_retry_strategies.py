"""Asynchronous functions, and so their retry strategies, are not in headrace yet; importing one says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.datastream._missing import missing_names

__all__: list[str] = []

if not TYPE_CHECKING:  # checkers should go on to report these names as missing
    __getattr__ = missing_names(
        __name__,
        "ExponentialBackoffDelayRetryStrategy",
        "FixedDelayRetryStrategy",
        "NO_RETRY_STRATEGY",
        "NoRetryStrategy",
        "RetryPredicate",
    )
