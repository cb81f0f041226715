"""gzip compression of large response bodies, as kube-apiserver does it."""

from __future__ import annotations

import asyncio
import gzip

from lamina.server.http.request import Request, Response

COMPRESS_ABOVE = 128 * 1024
_GZIP_HEADERS = (("content-encoding", "gzip"), ("vary", "Accept-Encoding"))


def should_compress(request: Request, body: bytes) -> bool:
    """Return whether a body is large and the client accepts gzip."""
    return len(body) > COMPRESS_ABOVE and any(
        coding.strip() == "gzip" for coding in request.headers.get("accept-encoding", "").split(",")
    )


async def compress(response: Response, body: bytes) -> Response:
    """Return a response with its body compressed in a thread."""
    packed = await asyncio.to_thread(gzip.compress, body, 1)
    return Response(response.status, packed, response.content_type, [*response.headers, *_GZIP_HEADERS])
