"""Compiles the typeahead's kernel in advance, so that serving processes need not; prints how far it is."""

import logging

from service.search.typeahead.compiled import load_kernel

if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    load_kernel()
