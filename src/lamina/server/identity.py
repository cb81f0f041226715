"""
Who asks, and whether anonymous callers may.

A client certificate or a bearer token says who it is; a wrong token is refused
rather than taken for nobody. Whoever is known may do everything; nobody may
see health and version, and is told what it may not do as a real server tells it.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from urllib.parse import unquote

from lamina.errors import Forbidden, SelectorError, Unauthorized
from lamina.server.request import ANONYMOUS, Identity, Request
from lamina.server.routes import Path

_OPEN = frozenset({"/healthz", "/livez", "/readyz", "/version", "/version/"})
_AUTHENTICATED = "system:authenticated"
_VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_SPACED = "the provided Authorization header contains extra space before the bearer token, and is ignored"
