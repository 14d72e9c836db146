"""The smallest value of an axis at which a quantity that rises with it passes.

The pure core decides (``seed_test``, ``threshold``, ``portfolio``); ``tune`` carries it out.
"""
