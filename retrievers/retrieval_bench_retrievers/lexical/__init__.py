"""Retrieval by words: BM25, learned term weights, and the index that they share."""
