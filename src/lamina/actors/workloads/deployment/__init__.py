"""Deployments: revisions kept as ReplicaSets, and the ways of getting from one to the next."""

from lamina.actors.workloads.deployment.controller import DEPLOYMENTS

__all__ = ["DEPLOYMENTS"]
