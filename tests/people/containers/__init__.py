"""The image and the composition: what can be shown of them without a Docker engine."""
