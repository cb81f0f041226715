"""Revisions for tests: numbered ones that hold something, stored or not."""

from lamina.core.rollout.history import History, history
from lamina.core.rollout.revision import Revision
from lamina.objects.types import Made, Obj


def revision(number: int, content: object = None, **fields: str) -> Revision:
    """Return revision `rN`; without content, one that no other number has."""
    held = {"spec": number if content is None else content}
    return Revision(number=number, **{"name": f"r{number}", "snapshot": held, **fields})  # type: ignore[arg-type]


def past(*numbers: int, high_water: int = 0) -> History:
    return history(map(revision, numbers), high_water)


def wanted(content: object, name: str = "new") -> Revision:
    """Return what is looked up: content, and the name it gets where no revision holds it."""
    return Revision(number=0, name=name, snapshot={"spec": content})


def owner(name: str = "app", generation: int = 1) -> Obj:
    return {
        "apiVersion": "example.com/v1",
        "kind": "App",
        "metadata": {"name": name, "namespace": "team", "uid": f"uid-{name}", "generation": generation},
    }


def stored(
    name: str, number: object = 1, *, data: object = None, controlled: bool = True, labels: Made | None = None
) -> Made:
    """Return a ControllerRevision as a server has it."""
    metadata: Made = {"name": name, "namespace": "team", "uid": f"uid-{name}", "resourceVersion": "7"}
    if labels:
        metadata["labels"] = labels
    if controlled:
        metadata["ownerReferences"] = [
            {
                "apiVersion": "example.com/v1",
                "kind": "App",
                "name": "app",
                "uid": "uid-app",
                "controller": True,
            }
        ]
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": metadata,
        "data": data if data is not None else {"spec": name},
        "revision": number,
    }
