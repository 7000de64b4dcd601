"""What is published: workflows, manifests and metadata, and a command that tries the wheel."""
