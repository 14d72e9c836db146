"""Fits that take each threshold for the interval it is, and what is asked of them."""
