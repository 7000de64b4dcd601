"""The typeahead beside everything a user would pick instead: one corpus, one load, one run."""
