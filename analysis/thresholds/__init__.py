"""D_K* and h* of every cell."""
