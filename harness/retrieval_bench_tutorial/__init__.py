"""The latency of the usual notebook, to show what it gives."""
