"""The controllers of this family: one for definitions, and a source of one for the instances of each definition."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.model.controller import AnyController, Source
from lamina.families.resourcegraph.compiled_graphs import Graphs
from lamina.families.resourcegraph.definitions.controller import definitions
from lamina.families.resourcegraph.instances.source import source
from lamina.families.resourcegraph.options import DEFAULTS, Options
from lamina.families.resourcegraph.owner_status import definition_state


class Controllers(Struct, frozen=True, kw_only=True):
    """The controllers, and the memo of compiled graphs that they share."""

    definitions: AnyController
    instances: Source
    graphs: Graphs


def controllers(options: Options = DEFAULTS) -> Controllers:
    """Return the controllers, run with these options."""
    graphs = Graphs(omit=options.omit, most_dimensions=options.max_dimensions)
    return Controllers(
        definitions=replace(definitions(options, graphs), owner_state=definition_state),
        instances=source(options, graphs),
        graphs=graphs,
    )
