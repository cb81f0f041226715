"""
Signs client certificates for approved CertificateSigningRequests, as kube-controller-manager does.

The key of the certificate authority stays with the caller: `sign` returns the
certificate for a request in PEM.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from datetime import datetime
from typing import TypeAlias

from lamina.actors.field_manager import MANAGER
from lamina.core import csr
from lamina.core.model.controller import Controller, Watch, itself, only
from lamina.core.model.plan import Patch, Plan, one_stage
from lamina.core.model.queries import Answers
from lamina.core.model.world import World
from lamina.objects import meta
from lamina.objects.types import Obj, Ref

Sign: TypeAlias = Callable[[bytes, int | None], bytes]
"""Returns the certificate for a request, both in PEM, given how many seconds it is to be valid."""


def gather(world: World, ref: Ref) -> Obj | None:
    request = world.get(ref)
    if request is None or not csr.is_for_a_client(request) or csr.certificate(request):
        return None
    return request if csr.is_approved(request) and not csr.refusal(request) else None


def signing(sign: Sign) -> Controller[Obj]:
    """Return the controller that signs with an authority."""

    def plan(request: Obj, answers: Answers, now: datetime) -> Plan:
        issued = sign(csr.pem_of(request), (request.get("spec") or {}).get("expirationSeconds"))
        patch = Patch(
            ref=meta.ref(request),
            uid=meta.uid(request),
            version=meta.resource_version(request),
            patch={"status": {"certificate": b64encode(issued).decode()}},
            subresource="status",
        )
        return one_stage("issue the certificate", [patch], because="it is approved")

    return Controller(
        name="csrsigning",
        watches=(Watch(selects=only(*csr.REQUEST), api_version=csr.REQUEST_VERSION, enqueue=itself),),
        gather=gather,
        plan=plan,
        manager=MANAGER,
    )
