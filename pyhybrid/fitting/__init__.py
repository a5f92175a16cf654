"""Fits of one bound model: sessions, re-weighting, modes, replicates."""
