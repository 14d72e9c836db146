"""Threshold search: the smallest value of an integer axis at which a monotone quantity passes.

The pure core (``protocol``, ``seed_test``, ``bracket``, ``cell_search``, ``portfolio``) decides;
``ray_searcher`` and ``ray_scheduler`` let Ray Tune carry the decisions out.
"""
