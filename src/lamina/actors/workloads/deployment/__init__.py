"""The Deployment controller: revisions are ReplicaSets, and a strategy moves pods between them."""

from lamina.actors.workloads.deployment.controller import DEPLOYMENTS

__all__ = ["DEPLOYMENTS"]
