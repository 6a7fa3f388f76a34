"""Tables of loads beside each other."""
