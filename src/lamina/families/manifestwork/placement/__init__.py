"""Placement: selects managed clusters, and writes PlacementDecisions."""
