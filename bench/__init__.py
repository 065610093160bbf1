"""Benchmarks: each prints JSON lines with ratios taken within one run, because machines are noisy."""
