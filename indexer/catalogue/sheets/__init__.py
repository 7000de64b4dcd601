"""Makes the files of a catalogue from CSVs and workbooks."""
