"""Writing the typeahead of a generation: its segments, its manifests, and keeping both up with changes."""
