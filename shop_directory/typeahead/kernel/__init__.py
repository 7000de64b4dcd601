"""The tiers of /suggest (M9) over the sorted texts of one segment; numba compiles these modules to machine code.

All functions take plain arrays (`shop_directory.typeahead.segment` describes them) and check no bounds, because
`shop_directory.typeahead.reading.segments` has checked the segment. A range of texts is a half-open pair of positions.

Functions that insert shops take the number of shops found so far, as `count`, and return the new one.
"""
