"""Documents into an index: encoding with every core, cutting segments, and the `Index` that people hold."""
