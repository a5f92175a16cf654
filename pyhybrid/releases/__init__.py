"""Releases: data with their charge and statement, the folder they live in, the ledger."""
