"""Tables of systems where nothing is judged."""
