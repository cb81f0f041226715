"""The field manager name of kube-controller-manager's controllers."""

MANAGER = "kube-controller-manager"
