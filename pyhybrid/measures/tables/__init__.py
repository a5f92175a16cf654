"""The same measures on data frames, reconciled first."""
