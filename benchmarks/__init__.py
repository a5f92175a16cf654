"""Side-by-side measurements: `make bench`. Ratios within one run, never timed tests."""
