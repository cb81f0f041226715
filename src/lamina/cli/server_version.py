"""The version that a server reports, by which a server of `lamina up` is recognised."""

from __future__ import annotations

import orjson

from lamina.client.client import Client
from lamina.errors import ApiError

_MARK = "+lamina."


async def server_version(client: Client) -> str:
    """Return the gitVersion of a server; empty if it reports none, or not to this user."""
    try:
        reported = orjson.loads(await client.request("GET", "/version"))
    except (ApiError, orjson.JSONDecodeError):
        return ""
    return str(reported.get("gitVersion") or "") if isinstance(reported, dict) else ""


def is_embedded(version: str) -> bool:
    """Say whether a version is that of a server of `lamina up`."""
    return _MARK in version
