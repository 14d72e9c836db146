"""Layers beside one another: what each needs of parameters and of a cache to hold a graph."""
