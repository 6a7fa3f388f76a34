"""Code that users hand over: called, measured, and told apart from the tool's own."""
