"""How fast Lamina's server is, beside a real one on the same machine in the same run."""
