"""Pages for the data owner. All are confidential unless they say otherwise."""
