"""What is kept: the schema of the tables and the store that holds them."""
