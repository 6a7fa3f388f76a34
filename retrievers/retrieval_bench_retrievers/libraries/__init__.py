"""Retrievers of LangChain, LlamaIndex, Haystack and PyTerrier, and what they share."""
