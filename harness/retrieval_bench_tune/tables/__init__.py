"""Tables of tuned parameters."""
