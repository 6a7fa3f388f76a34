"""Tables of runs beside each other, and of why they differ."""
