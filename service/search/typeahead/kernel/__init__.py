"""The tiers of /suggest (M9) over the sorted texts of one segment, as machine code that numba makes of these modules.

All functions take plain arrays (`index_mappings.typeahead.segment` describes them) and check no bounds: the caller has
checked the segment. A range of texts is two positions, the first and the one after the last.
"""
