"""The typeahead in the process: segments of sorted texts, and what they answer to suggest requests (M9, M10)."""
