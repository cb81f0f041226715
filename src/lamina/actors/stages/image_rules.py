"""
The rules by which the default stages fail containers because of a name.

On the embedded server an image that is called `web:bad` cannot be pulled, and one
that is called `crash` crashes. That is a convention of this server alone: on any
other one such a name says nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from msgspec.structs import replace

from lamina.actors.stages.stage import Requirement, Stage

_NAMES = ("container.called", "container.said")
"""What containers are selected by: the name of the image, and everything in their command line."""


def without_image_rules(stages: Iterable[Stage]) -> tuple[Stage, ...]:
    """Return the stages without those that a name triggers, and the others without exceptions for such names."""
    return tuple(_without_exceptions(stage) for stage in stages if not _is_triggered_by_name(stage))


def _is_triggered_by_name(stage: Stage) -> bool:
    return any(one.operator == "Like" and _is_about_names(one) for one in stage.selector.containers or ())


def _without_exceptions(stage: Stage) -> Stage:
    containers = stage.selector.containers
    if containers is None or not any(map(_is_about_names, containers)):
        return stage
    kept = tuple(one for one in containers if not _is_about_names(one))
    return replace(stage, selector=dataclasses.replace(stage.selector, containers=kept))


def _is_about_names(requirement: Requirement) -> bool:
    return requirement.key.text in _NAMES
