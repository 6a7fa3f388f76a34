"""Tables of what is looked at before a measurement."""
