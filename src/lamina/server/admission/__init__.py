"""Admission: decoding, defaulting, plugins, policies, webhooks and validation of writes."""
