"""Two sides measured side by side in processes of their own, and whether one got slower."""
