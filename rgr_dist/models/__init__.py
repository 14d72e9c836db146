"""The models of the paper as plain torch forward passes, one file each."""
