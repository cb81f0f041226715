"""The family of ObjectSet and ObjectDeployment, as a value."""

from __future__ import annotations

from lamina.core.model.controller import DEFAULT_OPTIONS, Options
from lamina.core.model.family import Family
from lamina.core.model.upstream_lease import UpstreamLease
from lamina.families.objectset import preview
from lamina.families.objectset.controllers import cluster_controllers, controllers
from lamina.families.objectset.crds import definitions
from lamina.families.objectset.deployments.rollback import roll_back
from lamina.families.objectset.labels import SETS
from lamina.families.objectset.owner_status import live_status, owner_status, owners
from lamina.families.objectset.rbac import edits, is_finalizer, rights


def family(options: Options = DEFAULT_OPTIONS) -> Family:
    """Return this family, run with these options."""
    return Family(
        name="objectset",
        definitions=definitions,
        controllers=controllers(options),
        sources=(),
        owners=owners,
        owner_status=owner_status,
        live_status=live_status,
        rollback=roll_back,
        plan=preview.plan,
        rights=rights,
        edits=edits,
        upstream_leases=(
            UpstreamLease(
                upstream="Package Operator",
                namespace="package-operator-system",
                name="8a4hp84a6s.package-operator-lock",
            ),
        ),
        is_finalizer=is_finalizer,
        revision_kinds=SETS,
        cluster_controllers=cluster_controllers(options),
    )
