"""The settings of the service, read from the environment."""
