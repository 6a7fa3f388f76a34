"""A retriever under load: many clients, calls due at fixed times, and whether it keeps up."""
