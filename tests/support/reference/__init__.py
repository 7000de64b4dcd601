"""The reference backend: the rules written as plainly as possible, the oracle of the engines."""
