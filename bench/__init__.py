"""Benchmarks of Lamina, compared with kube-apiserver and the original controllers on the same machine."""
