"""Accuracy of a transformer by its split among heads."""
