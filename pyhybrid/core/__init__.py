"""Errors, checks of arguments, random streams, distinct rows, results in notebooks: below all."""
