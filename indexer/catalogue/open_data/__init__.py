"""Makes a catalogue of real shops from a published package of open data."""
