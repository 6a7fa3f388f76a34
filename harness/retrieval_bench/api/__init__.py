"""The same work from Python: what notebooks and scripts import from `retrieval_bench`."""
