"""Adapters: each module fulfils :class:`retrieval_bench.core.retriever.Retriever` with one engine.

They import :mod:`harness`, never the other way round, and import heavy libraries where needed.
"""
