"""Retrieval by words: BM25 in two libraries, and the index that both share."""
