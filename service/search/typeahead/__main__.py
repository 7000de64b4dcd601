"""Compiles the typeahead's kernel in advance, so that serving processes need not; prints how far it is."""

import gc
import logging

from service.search.typeahead.compiled import load_kernel

if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    # The compiler leaves little garbage, and looking for it takes a tenth of its time.
    gc.disable()
    load_kernel()
