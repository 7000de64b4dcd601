"""Tools for writing a catalogue: schema, validation, starter, import from CSV."""
