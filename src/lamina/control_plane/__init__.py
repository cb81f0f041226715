"""Control planes in this process: an API server with its controllers, and the clusters of a hub."""
