"""Which owner controls an object, and how control passes from one to another."""
