"""Tables and numbers of the documentation, each made from what it tells of."""
