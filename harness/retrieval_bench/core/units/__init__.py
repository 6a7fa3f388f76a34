"""A retriever's rankings as judgements ask for them: of units, and without the query itself."""
