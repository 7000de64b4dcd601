"""The REST endpoints: tools, probes, operations, and the OpenAPI document."""
