"""Tables of duets and of the self-test."""
