"""Tables of gates, duets and history."""
