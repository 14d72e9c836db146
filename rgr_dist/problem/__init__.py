"""What is learned: a graph, an embedding, and contexts to recover the graph from."""
