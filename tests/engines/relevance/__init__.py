"""How well the development queries are answered, by kind, on both engines and both doors of search."""
