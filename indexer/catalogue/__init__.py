"""What helps an operator to write a catalogue: schema, validation, starter, import from CSV."""
