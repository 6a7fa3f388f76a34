"""A retriever under load: what is compared and judged of it."""
