"""What a page is made of, and how it is rendered."""
