"""Approximate search held against exact search: how much it finds, and which setting is enough."""
