"""The whole service from outside: every door over real HTTP on loopback, or over stdio, with nothing replaced."""
