"""Controllers as webhooks: a hook returns the desired children of a parent, and they are reconciled."""
