"""Defaults of CustomResourceDefinitions and APIServices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from lamina.objects.types import Made


def _definition(definition: Made) -> None:
    spec, status = definition["spec"], definition["status"]
    names = spec["names"]
    if not names.get("singular"):
        names["singular"] = names["kind"].lower()
        if not names["singular"]:
            del names["singular"]
    if not names.get("listKind") and names["kind"]:
        names["listKind"] = f"{names['kind']}List"
    spec.setdefault("conversion", {"strategy": "None"})
    if not status.get("storedVersions"):
        stored = [version["name"] for version in spec.get("versions") or () if version["storage"]]
        if stored:
            status["storedVersions"] = stored[:1]


def _service(reference: Made) -> None:
    reference.setdefault("port", 443)


RULES: Final[Mapping[str, Callable[[Made], None]]] = {
    "apiextensions/v1.CustomResourceDefinition": _definition,
    "apiextensions/v1.ServiceReference": _service,
    "apiregistration/v1.ServiceReference": _service,
}
