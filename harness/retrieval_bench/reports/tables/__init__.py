"""Tables of each command."""
