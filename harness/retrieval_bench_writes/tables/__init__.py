"""Tables of what writes become."""
