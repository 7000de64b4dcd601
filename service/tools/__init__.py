"""The tools, one file each, and the registry that every door is made from."""
