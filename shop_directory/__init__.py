"""What belongs to neither side: the command line, how settings are read, and the conformance check."""
