"""Tables of runs and figures that other programs made."""
