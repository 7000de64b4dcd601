"""The indexer's private state: the newest record of each key, hidden ones too. The service never opens it (G3)."""
