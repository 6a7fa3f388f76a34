"""Tables of what can be named, fetched, exported and loaded."""
