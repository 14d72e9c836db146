"""Layers side by side: the parameters and the cache that each needs to hold a graph."""
