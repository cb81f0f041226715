"""Preview: which instances an edited definition would move, or which resources an edited instance would write."""

from __future__ import annotations

from datetime import datetime

from lamina.core.model.edited_world import EditedWorld
from lamina.core.model.queries import Answers, Query
from lamina.core.model.world import World
from lamina.core.rollout.preview import Preview
from lamina.families.resourcegraph.compiled_graphs import Graphs
from lamina.families.resourcegraph.definitions.preview import preview_definition
from lamina.families.resourcegraph.definitions.view import gather
from lamina.families.resourcegraph.instances.preview import preview_instance
from lamina.families.resourcegraph.instances.setups import setups
from lamina.families.resourcegraph.labels import DEFINITION
from lamina.families.resourcegraph.options import Options
from lamina.objects import meta
from lamina.objects.types import Obj


def plan(
    options: Options, graphs: Graphs, world: World, owner: Obj, answers: Answers, now: datetime
) -> Preview | tuple[Query, ...] | None:
    """Return what an edited definition or instance would do, or what has to be asked before that is known."""
    ref, kind = meta.ref(owner), meta.group_kind(owner)
    if kind == DEFINITION:
        view = gather(EditedWorld(world, [owner]), ref, graphs, options)
        return preview_definition(view, answers) if view is not None else None
    for setup in setups(world, options, graphs):
        if setup.kind == kind and setup.definition:
            return preview_instance(setup, world, owner, answers, now)
    return None
