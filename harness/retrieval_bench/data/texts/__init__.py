"""The texts of a dataset, whatever format they come in: how many tokens they are."""
