"""What the actors call themselves where others can see it: the names of those they stand in for."""

MANAGER = "kube-controller-manager"
