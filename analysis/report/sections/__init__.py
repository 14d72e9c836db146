"""Sections about a study as a whole, a file each: its summary, cost, and state while it runs."""
