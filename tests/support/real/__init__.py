"""The real parts that tests run against: OpenSearch nodes, a Redis, the development data.

A part is found where the machine has it and started at first use; a test whose part is absent is left out loudly.
"""
