"""Compiles the typeahead's kernel in advance, which takes half a minute, so that serving processes need not."""

from service.search.typeahead.compiled import load_kernel

if __name__ == "__main__":
    load_kernel()
