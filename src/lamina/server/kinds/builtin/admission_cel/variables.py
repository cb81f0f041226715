"""The names of CEL variables in policies."""

from __future__ import annotations

from typing import Final

OBJECT: Final = "object"
OLD: Final = "oldObject"
PARAMS: Final = "params"
REQUEST: Final = "request"
NAMESPACE: Final = "namespaceObject"
VARIABLES: Final = "variables"
