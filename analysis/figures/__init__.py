"""The figures, a file each: functions of the rows of a table and of axes, which return the axes."""
