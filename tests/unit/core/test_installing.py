"""Stories of definitions that a cluster has, or has not, when Lamina starts."""

from __future__ import annotations

from typing import Any

from lamina.core.installing import MARK, is_there, marked

DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.example.com", "annotations": {"by": "us"}},
    "spec": {"group": "example.com", "versions": [{"name": "v1", "schema": {"type": "object"}}]},
}


def stored(**spec: Any) -> dict[str, Any]:
    """Return what a server made of the definition: it filled in a few things."""
    wanted = marked(DEFINITION)
    return {
        **wanted,
        "metadata": {**wanted["metadata"], "uid": "1"},
        "spec": {"conversion": {"strategy": "None"}, **wanted["spec"], **spec},
    }


def test_what_the_server_filled_in_is_no_difference() -> None:
    assert is_there(stored(), marked(DEFINITION))


def test_a_definition_keeps_what_it_says_of_itself_beside_the_mark() -> None:
    assert marked(DEFINITION)["metadata"]["annotations"]["by"] == "us"
    assert MARK not in DEFINITION["metadata"]["annotations"]


def test_another_edition_is_not_there_even_if_it_says_more() -> None:
    shorter = {**DEFINITION, "spec": {"group": "example.com"}}

    assert not is_there(stored(), marked(shorter))


def test_an_edition_that_somebody_has_edited_since_is_not_there() -> None:
    edited = stored(versions=[{"name": "v1", "schema": {"type": "string"}}])
    longer = stored(versions=[*DEFINITION["spec"]["versions"], {"name": "v2"}])

    assert not is_there(edited, marked(DEFINITION))
    assert not is_there(longer, marked(DEFINITION))


def test_one_that_bears_no_mark_is_not_there() -> None:
    assert not is_there(DEFINITION, marked(DEFINITION))
