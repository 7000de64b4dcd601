"""The tools, one file each, and the registry from which every transport is made."""
