"""/suggest: the query, the responder, the cache, and the two HTTP paths that send its responses."""
