"""Measures of utility and disclosure risk on arrays: numpy and scipy only."""
