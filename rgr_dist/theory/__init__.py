"""What the paper proves, as functions that return arrays or DataFrames.

- ``construct.build``: the weights of Algorithms 1 to 5 and of ``ours`` (``projections``)
- ``all_pairs.score_all_pairs``: any layer of maximum heads, scored on all m² pairs
- ``one_head.decide``: whether one head of any width can hold a graph, with a certificate
- ``trained_embeddings.share_embedding``: rows that know the graph, and one narrow head
- ``bounds.counting_table``: the D_K that counting requires (Sec. 9)
- ``geometry.geometry``: restricted self-incoherence of an embedding (Definition B.4)
"""
