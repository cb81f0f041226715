//go:build tools

// Package e2e pins Kubernetes' own end-to-end suite, which judges the embedded server.
package e2e

import (
	_ "k8s.io/kubernetes/test/e2e"
)
