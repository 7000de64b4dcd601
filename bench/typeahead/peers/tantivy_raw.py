"""Tantivy as the manual of its Python package suggests: text fields, fuzzy and prefix term queries, BM25.

The analyzer splits at punctuation, lowers case and folds to ASCII; nothing of this project's forms, keys and tiers is
used, so the difference between this and the embedded engine is what those are worth.
"""

import time
from contextlib import AbstractContextManager
from importlib.metadata import version
from pathlib import Path
from typing import Final

import tantivy

from bench.built_indices import size_mb
from bench.typeahead.peers.shops import public_shops
from bench.typeahead.peers.starting import python_transport, uvicorn_version
from bench.typeahead.system import BuildStats, RunningServer, System

INDEX: Final = "index"
# Beginnings of so many characters are terms of their own: too many words begin so to be gathered at each request.
SHORT: Final = 2
SHOWN: Final = ("id", "shown_name", "shown_domain", "shown_category")
EVERYWHERE: Final = "any"
_WRITER_BYTES: Final = 256_000_000


class TantivyRaw(System):
    """The index is memory-mapped; searches run in the server's own process, on its event loop."""

    name = "tantivy-raw"
    about = (
        "Tantivy's own queries: words by BM25 with boosts for name, alias and domain, the last word as a prefix, one "
        "typo in words of four characters and more, weighted by popularity; raw ASGI on uvicorn."
    )

    def version(self) -> str:
        """Of tantivy-py and uvicorn."""
        return f"tantivy-py {version('tantivy')}, {uvicorn_version()}"

    def build(self, corpus: Path, folder: Path) -> BuildStats:
        """Write the index as one segment."""
        directory = folder / INDEX
        directory.mkdir()
        started = time.perf_counter()
        index = opened(directory)
        writer = index.writer(_WRITER_BYTES, 1)
        for shop in public_shops(corpus):
            document = tantivy.Document(
                id=[shop.id],
                shown_name=[shop.name],
                shown_domain=[shop.domain],
                shown_category=[shop.category],
                whole=list(shop.texts),
                short=list(shop.texts),
                words=list(shop.texts),
                name=[shop.name],
                category=list(shop.category_names),
                country=list(shop.countries) or [EVERYWHERE],
                popularity=[shop.popularity],
            )
            writer.add_document(document)
        writer.commit()
        writer.wait_merging_threads()
        return BuildStats(time.perf_counter() - started, size_mb(directory))

    def serving(self, folder: Path) -> AbstractContextManager[RunningServer]:
        """Serve the index."""
        return python_transport("bench.typeahead.peers.tantivy_transport", folder)


def words_analyzer() -> tantivy.TextAnalyzer:
    """Words without case and diacritics; the query is split by the same one."""
    return _folded(tantivy.Tokenizer.simple())


def whole_analyzer() -> tantivy.TextAnalyzer:
    """A whole text without case and diacritics, as one term."""
    return _folded(tantivy.Tokenizer.raw())


def opened(directory: Path) -> tantivy.Index:
    """The index in a folder, made if the folder is empty."""
    schema = tantivy.SchemaBuilder()
    for shown in SHOWN:
        schema.add_text_field(shown, stored=True, tokenizer_name="raw", index_option="basic")
    schema.add_text_field("whole", tokenizer_name="whole", index_option="basic")
    schema.add_text_field("short", tokenizer_name="short", index_option="basic")
    for words in ("words", "name", "category"):
        schema.add_text_field(words, tokenizer_name="words", index_option="freq")
    schema.add_text_field("country", tokenizer_name="raw", index_option="basic")
    schema.add_float_field("popularity", fast=True)
    index = tantivy.Index(schema.build(), path=str(directory))
    index.register_tokenizer("whole", whole_analyzer())
    index.register_tokenizer("short", _folded(tantivy.Tokenizer.ngram(1, SHORT, prefix_only=True)))
    index.register_tokenizer("words", words_analyzer())
    return index


def _folded(tokenizer: tantivy.Tokenizer) -> tantivy.TextAnalyzer:
    lower, ascii_only = tantivy.Filter.lowercase(), tantivy.Filter.ascii_fold()
    return tantivy.TextAnalyzerBuilder(tokenizer).filter(lower).filter(ascii_only).build()
