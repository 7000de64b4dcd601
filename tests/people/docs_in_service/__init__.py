"""What the service says of itself: /docs, the examples of its OpenAPI document, llms.txt, its entry in registries."""
