"""Tables of what is fetched, exported and loaded."""
