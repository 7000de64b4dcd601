"""/suggest, all of it: the query, the one responder, the cache, and the two ways over which a response is sent."""
