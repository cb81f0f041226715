"""Hooks in Python: what a user's file imports, and how it is run beside a control plane."""
