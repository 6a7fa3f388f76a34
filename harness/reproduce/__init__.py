"""Published numbers as data, and what the data at hand say of them."""

from harness.reproduce.check import Reproduction, reproduce
from harness.reproduce.published import Published, load_published, published_names

__all__ = ["Published", "Reproduction", "load_published", "published_names", "reproduce"]
