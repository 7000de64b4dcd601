"""One body of tests for every search backend, fed by the real indexer."""
