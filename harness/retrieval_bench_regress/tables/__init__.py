"""Tables of gates and of history."""
