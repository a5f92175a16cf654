"""Figures of the reports; the one place that imports matplotlib."""
