"""Other programs that make synthetic tables, beside ours on the same data."""
