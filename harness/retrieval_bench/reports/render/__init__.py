"""Tables to text, in every format."""
