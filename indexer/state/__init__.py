"""The indexer's private state: the last record of every key, hidden ones too, which the service never opens (G3)."""
