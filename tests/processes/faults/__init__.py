"""Every fault of an engine or a store, against every tool: what is answered meanwhile, and that it passes."""
