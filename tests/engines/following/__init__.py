"""An index that follows its source ends up as one built from what the source says in the end, whatever happens."""
