"""The OpenSearch engine."""
