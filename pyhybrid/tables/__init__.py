"""Whole tables: which model for which column, in which order, at which share of epsilon."""
