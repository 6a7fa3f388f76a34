"""The texts of a dataset, whatever format they come in: what they are written in."""
