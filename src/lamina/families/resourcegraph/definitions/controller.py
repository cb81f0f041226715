"""The controller of ResourceGraphDefinitions, as a value."""

from __future__ import annotations

from functools import partial

from lamina.core.model.controller import Controller
from lamina.core.model.memo import MemoStore
from lamina.families.resourcegraph.compiled_graphs import Graphs
from lamina.families.resourcegraph.definitions.complaints import complain
from lamina.families.resourcegraph.definitions.plan import plan
from lamina.families.resourcegraph.definitions.view import View, gather
from lamina.families.resourcegraph.definitions.watches import WATCHES
from lamina.families.resourcegraph.labels import MANAGER
from lamina.families.resourcegraph.options import DEFAULTS, Options


def definitions(options: Options = DEFAULTS, graphs: Graphs | None = None) -> Controller[View]:
    """Return the controller of definitions; `graphs` are those that it shares with the controllers of instances."""
    shared = (
        graphs if graphs is not None else Graphs(omit=options.omit, most_dimensions=options.max_dimensions)
    )
    return Controller(
        name="resourcegraphdefinition",
        watches=WATCHES,
        gather=partial(gather, graphs=shared, options=options, memos=MemoStore()),
        plan=plan,
        complain=complain,
        manager=MANAGER,
        at_once=options.workers,
        period=options.flush,
        # What a graph needs may be served from now on.
        resync_on_discovery=True,
    )
