"""Discovery and OpenAPI v2 and v3 of the served kinds."""
