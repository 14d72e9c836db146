"""Threshold search: the smallest value of an integer axis at which a monotone quantity passes.

The pure core decides (``protocol``, ``seed_test``, ``bracket``, ``cell_state``, ``cell_search``,
``portfolio``); ``tune`` lets Ray Tune carry the decisions out.
"""
