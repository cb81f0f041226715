//go:build tools

// Package real pins the control plane that the conformance tests compare with.
package real

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
)
