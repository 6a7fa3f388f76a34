"""Speed and memory of this project beside other libraries, in one run: figures, not tests.

``python -m tests.benchmarks`` (``make perf``) measures and prints; see README.md here.
"""
