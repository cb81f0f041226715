"""What evaluating an expression costs, by Kubernetes' numbers."""
