"""What is kept: the schema of the tables, the files that hold them, and what a row says."""
