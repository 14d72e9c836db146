"""How D_K* and h* scale: fits that treat each threshold as the interval it is."""
