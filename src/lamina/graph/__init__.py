"""Resource graphs: definitions compiled to nodes with typed expressions, and the evaluation of these on live objects."""
