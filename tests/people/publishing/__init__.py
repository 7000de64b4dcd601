"""What is published: workflows, manifests, metadata, and the wheel on its own."""
