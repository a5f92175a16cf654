"""What attacks with random tables, options and files found, as examples."""
