"""The conformance suite for authors of retrievers, imported from ``retrieval_bench.testing``."""
