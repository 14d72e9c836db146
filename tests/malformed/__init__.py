"""Malformed inputs from a seed, and whether the command line refuses each as it should."""
