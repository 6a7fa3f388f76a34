"""A retrieval benchmarking harness: ranking quality and latency of any retriever, side by side."""
