"""Two sides measured call beside call in processes of their own, and whether one got slower."""
