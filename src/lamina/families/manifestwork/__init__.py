"""Open Cluster Management: one template, a ManifestWork for each selected cluster, and an abort on failure."""
