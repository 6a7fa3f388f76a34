"""Records as JSON documents, and the schemas of these."""
