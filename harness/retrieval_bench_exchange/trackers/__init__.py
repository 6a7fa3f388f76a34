"""Trackers of experiments and of calls, to which a saved run is sent."""
