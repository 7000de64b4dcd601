"""The typeahead compared with its alternatives: one corpus, one load, one run."""
