"""How well the development queries are answered, by kind, on both engines, by find_shop and by /suggest."""
