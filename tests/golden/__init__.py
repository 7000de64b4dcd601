"""What others rely on to the letter, written down: mappings, query bodies and other wire forms."""
