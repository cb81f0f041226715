"""The language of definitions: SimpleSchema, plurals of kinds, and expressions in strings."""
