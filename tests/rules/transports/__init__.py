"""The whole service from outside: every transport over real HTTP on loopback, or over stdio, with nothing replaced."""
