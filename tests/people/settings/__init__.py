"""Tests of settings: how they are read, checked, shown and documented, on both sides."""
