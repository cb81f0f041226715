"""The family of ResourceGraphDefinition, as a value."""

from __future__ import annotations

from functools import partial

from lamina.core.model.family import Family
from lamina.core.model.upstream_lease import UpstreamLease
from lamina.families.resourcegraph import owner_status, preview
from lamina.families.resourcegraph.commands.plans import pin, roll_back
from lamina.families.resourcegraph.controllers import controllers
from lamina.families.resourcegraph.crds import definitions
from lamina.families.resourcegraph.options import DEFAULTS, Options
from lamina.families.resourcegraph.rbac import edits, is_finalizer, rights


def family(options: Options = DEFAULTS) -> Family:
    """Return this family, run with these options."""
    found = controllers(options)
    return Family(
        name="resourcegraph",
        definitions=definitions,
        controllers=(found.definitions,),
        sources=(found.instances,),
        owners=owner_status.owners,
        owner_status=owner_status.owner_status,
        live_status=owner_status.live_status,
        rollback=roll_back,
        pin=pin,
        plan=partial(preview.plan, options, found.graphs),
        rights=rights,
        # Instances follow the current revision of their definition, which upstream's CRD does not declare.
        required_status_fields={"resourcegraphdefinitions.kro.run": ("status.currentRevision",)},
        edits=edits,
        shared_definitions=("resourcegraphdefinitions.kro.run", "resourcegraphdefinitionrevisions.kro.run"),
        upstream_leases=(UpstreamLease(upstream="kro", namespace="kro-system", name="controller.kro.run"),),
        is_finalizer=is_finalizer,
        revision_kinds=owner_status.REVISION_KINDS,
    )
