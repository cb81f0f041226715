"""
Content negotiation.

The first clause of the Accept header that the endpoint supports wins, by weight and
then in the given order.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from lamina.errors import NotAcceptable

_ACCEPTED = "application/json, application/yaml, application/vnd.kubernetes.protobuf"


class Representation(NamedTuple):
    """The encoding of a response: `media` json or yaml; `form` empty, Table or a partial metadata kind."""

    media: str
    form: str

    @property
    def content_type(self) -> str:
        if self.form:
            return f"application/{self.media}"
        return "application/yaml" if self.media == "yaml" else "application/json"


PLAIN = Representation("json", "")
PLAIN_ACCEPTS = ("", "application/json", "*/*")
"""The most frequent Accept headers."""
_FORMS = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")
_MEDIA = {
    "*/*": "json",
    "application/*": "json",
    "application/json": "json",
    "application/yaml": "yaml",
    "text/yaml": "yaml",
    "application/x-yaml": "yaml",
}


def negotiate(accept: str, forms: tuple[str, ...] = _FORMS) -> Representation:
    """Return the representation, among the forms of the endpoint; raises NotAcceptable."""
    if accept in PLAIN_ACCEPTS:
        return PLAIN
    wanted = _negotiate(accept, forms)
    if wanted is None:
        offered = _ACCEPTED
        raise NotAcceptable(f"only the following media types are accepted: {offered}")
    return wanted


_SERVED = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
_STREAMED = ("application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch")


def check_route(accept: str, *, streams: bool) -> None:
    """
    Refuse an Accept header that no built-in endpoint supports, before the object is read.

    `streams` is whether the endpoint also watches. Weights are ignored here.
    """
    if _is_supported(accept):
        return
    offered = ", ".join(_SERVED + _STREAMED if streams else _SERVED)
    error = NotAcceptable(f"406: Not Acceptable\n\nAvailable representations: {offered}")
    error.shows_details = True
    raise error


@lru_cache(maxsize=512)
def _is_supported(accept: str) -> bool:
    return any(_media(clause) in ("*/*", *_SERVED) for clause in accept.split(","))


def _media(clause: str) -> str:
    return clause.partition(";")[0].strip()


@lru_cache(maxsize=512)
def _negotiate(accept: str, forms: tuple[str, ...]) -> Representation | None:
    for media, parameters in clauses(accept):
        name = _MEDIA.get(media)
        if name is None:
            continue
        form = parameters.get("as", "")
        if not form:
            return Representation(name, "")
        if (
            form in forms
            and parameters.get("g") == "meta.k8s.io"
            and parameters.get("v") in ("v1", "v1beta1")
        ):
            return Representation(name, form)
    return None


def clauses(accept: str) -> list[tuple[str, dict[str, str]]]:
    """Return the media types of an Accept header with their parameters, highest weight first."""
    found: list[tuple[float, str, dict[str, str]]] = []
    for clause in accept.split(","):
        media, *rest = (part.strip() for part in clause.split(";"))
        parameters = {}
        for part in rest:
            key, _, value = part.partition("=")
            parameters[key.strip()] = value.strip().strip('"')
        try:
            weight = float(parameters.pop("q", "1"))
        except ValueError:
            weight = 1.0
        if media:
            found.append((weight, media, parameters))
    # Sorting is stable.
    return [
        (media, parameters)
        for weight, media, parameters in sorted(found, key=lambda one: -one[0])
        if weight > 0
    ]
