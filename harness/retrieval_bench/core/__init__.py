"""Base of everything else: records, errors, the retriever contract, plug-ins, configs."""
