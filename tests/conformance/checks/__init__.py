"""
What every Kubernetes API server does, told by id.

Each test talks to a server from outside, with kubectl and plain HTTP, and
passes on a real kube-apiserver: a failure is a difference from Kubernetes.
"""
