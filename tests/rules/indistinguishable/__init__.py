"""No channel lets callers distinguish a hidden shop from an unknown one (V2)."""
