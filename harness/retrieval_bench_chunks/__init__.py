"""Chunks and spans: truth as characters of documents, and chunkers in front of retrievers."""
