"""Validation rules (CEL) of CRD schemas: compiled when the CRD is written, cached with its kind."""
