"""Launches: a measurement in fresh processes, and such a process for whoever needs one."""
