"""The machine and the process that calls are timed in, and what else goes on there."""
