"""The tiers of /suggest but 4 and but two errors (M9) over sorted texts, as machine code that numba makes of these.

All see plain arrays (`index_mappings.typeahead` tells which) and check no bounds: whoever calls them has checked the
file that they come from. A range of texts is two places, the first and the one after the last.
"""
