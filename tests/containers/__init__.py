"""The image and the composition in a real Docker engine: `make test-containers`, for root on Debian."""
