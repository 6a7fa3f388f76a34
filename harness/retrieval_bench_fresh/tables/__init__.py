"""Tables of cold starts."""
