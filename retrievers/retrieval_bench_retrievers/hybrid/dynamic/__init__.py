"""Fusion whose weights each query decides by how specific its words are."""
