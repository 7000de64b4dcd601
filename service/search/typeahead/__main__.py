"""Compiles the machine code of the typeahead, so that no process that serves has to: takes some seconds."""

from service.search.typeahead.compiled import load_kernel

if __name__ == "__main__":
    load_kernel()
