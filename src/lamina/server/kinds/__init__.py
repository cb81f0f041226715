"""The kinds that a server serves: their interface, registry, built-in kinds and CRDs."""
