"""Intervals, tests and power; arrays in, arrays out."""
