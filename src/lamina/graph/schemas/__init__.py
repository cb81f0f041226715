"""The schemas of generated kinds: their CRD, breaking changes, union, and projection of specs."""
