"""CONTRIBUTING.md held to what it says: each addition is planted in a copy, and the tests that it names fail there."""
