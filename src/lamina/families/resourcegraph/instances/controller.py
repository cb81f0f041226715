"""The controllers of instances, as values: one reconciles those of a definition, another only deletes."""

from __future__ import annotations

from functools import partial

from lamina.core.model.controller import Controller
from lamina.families.resourcegraph.instances.complaints import complain
from lamina.families.resourcegraph.instances.gather import gather
from lamina.families.resourcegraph.instances.plan import plan
from lamina.families.resourcegraph.instances.view import Setup, View
from lamina.families.resourcegraph.instances.watches import deletion_watches, watches
from lamina.families.resourcegraph.labels import MANAGER
from lamina.families.resourcegraph.owner_status import instance_state
from lamina.objects.digest import digest


def instances(setup: Setup) -> Controller[View]:
    """
    Return the controller of the instances of one definition, or of a kind whose definition is gone.

    It is replaced by another where its revisions have children of other kinds.
    """
    deletes = not setup.definition
    return Controller(
        name=f"resourcegraph-{'deletion' if deletes else 'instances'}-{setup.kind.kind}.{setup.kind.group}",
        config_hash=digest([setup.definition, setup.api_version, setup.children, setup.externals]),
        watches=deletion_watches(setup) if deletes else watches(setup),
        gather=partial(gather, setup),
        plan=plan,
        complain=partial(complain, setup),
        manager=MANAGER,
        at_once=setup.options.workers,
        period=setup.options.flush,
        owner_state=instance_state,
    )
