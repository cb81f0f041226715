"""
Checks of what every Kubernetes API server does, by id.

Each test uses a server from outside, with kubectl and plain HTTP, and passes on a real
kube-apiserver: a failure is a difference from Kubernetes.
"""
