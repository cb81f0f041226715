//go:build tools

// Package ocm pins the original of the manifestwork family, to be measured beside ours.
package ocm

import _ "open-cluster-management.io/ocm/cmd/work"
