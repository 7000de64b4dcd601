"""Gives every test the real parts, the markers' meaning and `--require-real`.

All of it lives in the plugin, so that a run outside this folder can load the same rules by name.
"""

pytest_plugins = ["tests.real.plugin"]
