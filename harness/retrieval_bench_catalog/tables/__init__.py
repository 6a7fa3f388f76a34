"""Tables of what can be named."""
