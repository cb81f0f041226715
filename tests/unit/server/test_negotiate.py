"""Content negotiation."""

import pytest

from lamina.errors import NotAcceptable
from lamina.server.codec.negotiate import Representation, negotiate

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize(
    ("accept", "media", "form"),
    [
        ("", "json", ""),
        ("*/*", "json", ""),
        ("application/*", "json", ""),
        ("application/json", "json", ""),
        ("application/yaml", "yaml", ""),
        ("application/vnd.kubernetes.protobuf,application/json", "json", ""),
        (f"{TABLE},application/json", "json", "Table"),
        (f"application/json,{TABLE}", "json", ""),
        (f"application/json;q=0.5,{TABLE}", "json", "Table"),
        ("application/json;as=Table;v=v9;g=meta.k8s.io,application/json", "json", ""),
        (PARTIAL, "json", "PartialObjectMetadata"),
        ("application/json;stream=watch", "json", ""),
    ],
)
def test_the_first_clause_that_can_be_served_wins(accept: str, media: str, form: str) -> None:
    assert negotiate(accept) == Representation(media, form)


@pytest.mark.parametrize(
    "accept",
    ["text/html", "application/vnd.kubernetes.protobuf", "application/cbor", "application/json;as=Table;v=v9;g=meta.k8s.io",
     "application/json;q=0"],
)  # fmt: skip
def test_what_cannot_be_served_is_refused(accept: str) -> None:
    with pytest.raises(NotAcceptable):
        negotiate(accept)


def test_an_endpoint_offers_only_its_own_forms() -> None:
    with pytest.raises(NotAcceptable):
        negotiate(TABLE, forms=())
