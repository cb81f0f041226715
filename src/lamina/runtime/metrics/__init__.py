"""What a process reports about itself: Prometheus metrics, health checks and profiles."""
