"""How D_K* and h* scale: fits that take each threshold for the interval it is."""
