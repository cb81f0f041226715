"""Kubernetes objects as values: types, references, metadata, selectors, paths, quantities, durations."""
