"""Tables of spans and of what chunkers make of them."""
