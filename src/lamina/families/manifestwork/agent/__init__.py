"""The agent of one cluster: it applies the ManifestWorks in its namespace of the hub, and reports their status."""
