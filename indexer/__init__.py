"""The write side: a batch job that projects public shops, and nothing else, into search indices."""
