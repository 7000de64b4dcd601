"""One typing error in the first characters of a text, where neither engine walks for it: what is looked up instead."""

from collections.abc import Mapping

from index_mappings.roles import LACKING, lacking_field


def looked_up(field: str, text: str) -> tuple[Mapping[str, tuple[str, ...]], tuple[str, ...]]:
    """The terms of which a beginning has one, if the text is meant to be it with one error in the first characters.

    Args:
        field: a MISSPELT one.
        text: at least ONE_TYPO_MIN characters.

    Returns:
        terms by the field's columns that lack a character, and terms among its beginnings as they are.
    """
    lacks: dict[str, tuple[str, ...]] = {}
    whole: list[str] = []
    for place in LACKING:
        before, own, after = text[:place], text[place], text[place + 1 :]
        without = before + after
        # Another character stands there, or one is missing.
        lacks[lacking_field(field, place)] = (without, text)
        # There is one too many, or it has changed places with the next one.
        whole += [without, f"{before}{after[0]}{own}{after[1:]}"]
    return lacks, tuple(dict.fromkeys(whole))
