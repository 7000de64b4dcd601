"""The typeahead of a generation: immutable segment files of sorted texts, and the manifest that names them."""
