"""Request bodies in and response bodies out: JSON, YAML, protobuf, tables and watch events."""
