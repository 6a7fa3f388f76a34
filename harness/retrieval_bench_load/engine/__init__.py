"""Load that is made: when calls are due, who makes them, and what a level is evidence of."""
