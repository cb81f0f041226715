"""How the controllers of this family run."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum

from msgspec import Struct

from lamina.families.resourcegraph.labels import CONTROLLER_NAMESPACE


class InputStorage(StrEnum):
    """Where the specs of input revisions are kept: as objects, or in the status of their instance."""

    CRD = "CRD"
    INLINE = "Inline"


class Options(Struct, frozen=True, kw_only=True):
    """The options of the controllers of definitions and of instances."""

    workers: int = 5
    flush: timedelta = timedelta(minutes=30)
    history_limit: int = 10
    """How many revisions are kept where a definition does not say it."""
    input_storage: InputStorage = InputStorage.CRD
    controller_namespace: str = CONTROLLER_NAMESPACE
    propagation_interval: timedelta = timedelta(seconds=30)
    """How often a gate that is closed is evaluated again without an event."""
    max_collection_size: int = 1000
    max_dimensions: int = 10
    omit: bool = False
    """Whether `omit()` may be used: the gate CELOmitFunction."""
    deletes_definitions: bool = False
    """Whether the generated CustomResourceDefinition is deleted with its definition."""


DEFAULTS = Options()
