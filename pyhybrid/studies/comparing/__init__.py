"""Several mechanisms on one data set, and risk against utility."""
