//go:build tools

// Package kro pins the original of the resourcegraph family, to be recorded and measured beside ours.
package kro

import _ "github.com/kubernetes-sigs/kro/cmd/controller"
