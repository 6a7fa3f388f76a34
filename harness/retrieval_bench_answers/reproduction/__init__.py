"""Do I get the published number? Published numbers as data, and what the data at hand say."""

from retrieval_bench_answers.reproduction.check import Reproduction, reproduce
from retrieval_bench_answers.reproduction.published import (
    Published,
    load_published,
    published_names,
)

__all__ = ["Published", "Reproduction", "load_published", "published_names", "reproduce"]
