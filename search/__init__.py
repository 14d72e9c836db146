"""Threshold search: the smallest value of an integer axis at which a monotone quantity passes.

The pure core decides (``protocol``, ``probe_verdict``, ``bracket``, ``cell_state``,
``cell_search``, ``portfolio``); ``tune`` lets Ray Tune carry the decisions out.
"""
