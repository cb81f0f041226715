"""Admission webhooks that Lamina serves: their registration, certificates and reviews."""
