"""The in-process typeahead: segments of sorted texts, which answer suggest requests (M9, M10)."""
