"""The controllers of this family: one each for sets, deployments and ObjectSetPhases of both scopes."""

from __future__ import annotations

from lamina.core.model.controller import DEFAULT_OPTIONS, AnyController, Options
from lamina.families.objectset.class_phases.controller import cluster_controllers, phases
from lamina.families.objectset.class_phases.view import PhaseClass
from lamina.families.objectset.deployments.controller import deployments
from lamina.families.objectset.sets.controller import sets

__all__ = ["cluster_controllers", "controllers", "deployments", "phases", "sets"]


def controllers(options: Options = DEFAULT_OPTIONS) -> tuple[AnyController, ...]:
    """Return the controllers that always run; the built-in class of phases is one of them."""
    return (sets(options), deployments(options), phases(PhaseClass(), options))
