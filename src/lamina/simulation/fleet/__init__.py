"""Simulated agents of managed clusters, and the outcome of the workloads they apply."""
