"""Cases for the tests that attack pyhybrid with random tables, options and files."""
