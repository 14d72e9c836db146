"""Constructions, bounds and embedding geometry: what the paper proves, in numbers."""
