"""Writes the typeahead of a generation, its segments and manifests, and updates it after changes."""
