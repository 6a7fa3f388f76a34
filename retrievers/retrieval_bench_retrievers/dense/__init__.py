"""Exact search by vectors: every document, or an index of FAISS."""
