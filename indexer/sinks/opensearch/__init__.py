"""The OpenSearch sink."""
