"""Statements on a database, which are the user's own: connection, table, failures, health."""
