"""Python against live R."""
