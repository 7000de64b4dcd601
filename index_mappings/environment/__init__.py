"""How both sides take their settings from the environment: read, checked, shown and documented in one way."""
