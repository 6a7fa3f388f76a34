"""Steps one after the other: finding, rewriting, reranking and reading."""
