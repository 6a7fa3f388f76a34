"""Engines by URI: one collection each, filled by the harness or by ``data load``, and searched."""
