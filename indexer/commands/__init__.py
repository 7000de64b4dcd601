"""The commands of `shop-directory index`, one module each."""
