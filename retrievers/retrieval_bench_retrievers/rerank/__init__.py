"""A list of hits put into another order: cross-encoders and rerankers of libraries."""
