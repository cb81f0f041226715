"""Which requests faults apply to: the attributes they match, and the requests that are exempt."""

from __future__ import annotations

from typing import NamedTuple

from lamina.faults import RequestAttributes, attributes_of
from lamina.server.http.request import Request

EXEMPT_USER_AGENT = "lamina-chaos"
"""The user agent of `lamina chaos`: its requests are exempt, so that faults can always be removed."""


class FaultTarget(NamedTuple):
    """The attributes of a request that faults match; they are parsed only when there is a fault."""

    method: str
    path: str
    query: str
    user: str

    @classmethod
    def of(cls, request: Request) -> FaultTarget:
        return cls(request.method, request.path, request.query, request.user.name)

    @property
    def attributes(self) -> RequestAttributes:
        request = Request(self.method, self.path, self.query)
        first = {name: values[0] for name, values in request.parameters.items()}
        return attributes_of(self.method, self.path, first, self.user)


def is_exempt(request: Request) -> bool:
    """Return whether a request meets no fault, whatever the fault table says."""
    return request.path.startswith("/lamina/") or request.headers.get("user-agent") == EXEMPT_USER_AGENT
