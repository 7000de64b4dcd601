"""The errors of reading a typeahead."""


class SegmentCutError(Exception):
    """The mapped file of a segment was cut short after it was opened. The text names it, for operators."""
