"""The command line as people and scripts meet it: its help, its examples, its JSON, its exit codes, its completion."""
