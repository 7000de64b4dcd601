"""The rules that `shop-directory check` asks, one module a subject."""
