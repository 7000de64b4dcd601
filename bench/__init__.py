"""Benchmarks: ratios between things measured in the same run, as single figures of a busy machine mean little."""
