"""Tables of runs beside each other."""
