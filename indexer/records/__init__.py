"""The records of a catalogue as validated values, and their problems."""
