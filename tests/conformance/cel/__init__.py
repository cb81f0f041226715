"""The official conformance suite of CEL, on our implementation."""
