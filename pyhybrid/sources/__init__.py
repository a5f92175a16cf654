"""Tables that stay where they are: one interface, whole-number sums over their records."""
