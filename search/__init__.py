"""The smallest value of an axis that passes, where larger ones pass too.

The pure core decides (``seed_test``, ``threshold``, ``portfolio``); ``tune`` carries it out.
"""
