"""Changes of a catalogue: from a file, a pipe, and line by line."""
