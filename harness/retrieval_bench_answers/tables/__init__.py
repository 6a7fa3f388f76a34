"""Tables of answers and of published figures."""
