"""Controllers on the hub: a ManifestWorkReplicaSet is rolled out to the clusters of its placements."""
