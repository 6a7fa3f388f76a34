"""What everything else is built on: records, errors, the retriever contract, plug-ins, configs."""
