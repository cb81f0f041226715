"""The agent of one cluster: it applies the works that the hub has for it, and says how they do."""
