"""Every fault of an engine or a store, held against every tool: what is told meanwhile, and that it passes."""
