"""Cases for the tests that attack pyhybrid with random tables, options and files.

Each entry point is a strategy and a check; a check returns whether there was a valid result, and
raises for anything but a valid result or an error of `pyhybrid.core.errors`. `tests/test_fuzz_*.py`
run some hundreds of each, `python -m benchmarks.fuzz --examples N` as many as wanted.
"""
