"""Opens the segments of a typeahead, and answers suggest requests from them."""
