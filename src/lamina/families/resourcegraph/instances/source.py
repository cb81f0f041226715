"""The source of the controllers of instances: they come and go with definitions, revisions and generated kinds."""

from __future__ import annotations

from msgspec.structs import replace

from lamina.core.model.controller import Source, no_keys
from lamina.families.resourcegraph.compiled_graphs import Graphs
from lamina.families.resourcegraph.definitions.watches import WATCHES
from lamina.families.resourcegraph.instances.controller import instances
from lamina.families.resourcegraph.instances.setups import setups
from lamina.families.resourcegraph.options import DEFAULTS, Options


def source(options: Options = DEFAULTS, graphs: Graphs | None = None) -> Source:
    """Return the source; `graphs` are those that it shares with the controller of definitions."""
    shared = (
        graphs if graphs is not None else Graphs(omit=options.omit, most_dimensions=options.max_dimensions)
    )
    return Source(
        name="resourcegraph",
        # The caches of the controller of definitions.
        watches=tuple(replace(one, enqueue=no_keys) for one in WATCHES),
        controllers=lambda world: tuple(instances(one) for one in setups(world, options, shared)),
    )
