"""The task: a graph, an embedding, and contexts to recover the graph in."""
