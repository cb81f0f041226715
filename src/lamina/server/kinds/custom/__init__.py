"""Custom resources: CRD validation, and decoding, validation and storage of their objects."""
