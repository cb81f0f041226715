"""Static cost estimates of expressions, by Kubernetes' rules."""
