"""The records of a catalogue as validated values, and what can be wrong with one."""
