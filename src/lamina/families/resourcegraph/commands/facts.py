"""Gathers what a command has to know: the object, its revisions, and the instances of a definition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from lamina.core.model.queries import Answers, Found, Listed, Query, Read, ReadAll
from lamina.core.model.revision_commands import Targets
from lamina.errors import SettingsError
from lamina.families.resourcegraph.api import generated_kind
from lamina.families.resourcegraph.hashes import label_value
from lamina.families.resourcegraph.labels import (
    DEFINITION,
    DEFINITION_REVISION,
    INPUT_REVISION,
    INSTANCE_NAME,
    RGD_NAME,
)
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.numbers import whole
from lamina.objects.selectors import from_labels
from lamina.objects.types import GroupKind, Obj, Ref

_INSTALL = "install it with `lamina crds --families resourcegraph | kubectl apply --server-side -f -`"


class Facts(Struct, frozen=True, kw_only=True):
    """
    A definition or an instance, as it was read.

    `revisions` are those of the definition, or the input revisions of the instance, oldest
    first. `instances` are those of the definition, where a command needs them.
    """

    ref: Ref
    owner: Obj
    revisions: tuple[Obj, ...] = ()
    instances: tuple[Obj, ...] = ()

    @property
    def is_definition(self) -> bool:
        return is_definition(self.owner)

    @property
    def title(self) -> str:
        """Return the object as it is named on the command line."""
        kind = "rgd" if self.is_definition else self.ref.kind.lower()
        return f"{kind}/{self.ref.name}"

    @property
    def status(self) -> Obj:
        return self.owner.get("status") or {}


def is_definition(obj: Obj) -> bool:
    return (meta.ref(obj).group, obj.get("kind")) == DEFINITION


def targets(kinds: Kinds, answers: Answers) -> Targets | tuple[Query, ...]:
    """Return the kinds that commands take: that of definitions, and those that definitions generate."""
    asked = ReadAll(_kind(kinds, DEFINITION), "", whole=True)
    if asked not in answers:
        return (asked,)
    definitions = _listed(answers, asked)
    wanted = {DEFINITION, *map(generated_kind, definitions)}
    selected = Kinds(kind for kind in kinds if kind.group_kind in wanted)
    return Targets(kinds=selected, served=kinds, definitions=definitions)


def gather(
    found: Targets, ref: Ref, answers: Answers, *, revisions: bool = True, instances: bool | None = None
) -> Facts | tuple[Query, ...]:
    """
    Return the facts about an object; raises SettingsError where it does not exist.

    `instances` are read whole, or without it only their metadata; None for not at all.
    """
    if GroupKind(ref.group, ref.kind) == DEFINITION:
        owner = next((one for one in found.definitions if meta.name(one) == ref.name), None)
    else:
        asked = Read(ref, whole=True)
        if asked not in answers:
            return (asked,)
        answer = answers.get(asked)
        owner = answer.obj if isinstance(answer, Found) else None
    if owner is None:
        kind = found.served.preferred(GroupKind(ref.group, ref.kind))
        plural = kind.plural if kind is not None else ref.kind.lower()
        hint = "select a namespace with -n" if ref.namespace else None
        raise SettingsError(f'{plural}.{ref.group} "{ref.name}" not found', hint=hint)
    queries: list[ReadAll] = []
    if revisions:
        queries.append(_revisions_query(found.served, ref, owner))
    kind = found.served.preferred(generated_kind(owner)) if is_definition(owner) else None
    if instances is not None and kind is not None:
        queries.append(ReadAll(kind, "", whole=instances))
    if missing := tuple(query for query in queries if query not in answers):
        return missing
    read = [_listed(answers, query) for query in queries]
    own = _own(owner, read.pop(0)) if revisions else ()
    if not is_definition(owner):
        own = own or tuple(_inline(owner))
    return Facts(
        ref=ref,
        owner=owner,
        revisions=tuple(sorted(own, key=number)),
        instances=read[0] if read else (),
    )


def _revisions_query(kinds: Kinds, ref: Ref, owner: Obj) -> ReadAll:
    name = label_value(ref.name)
    if is_definition(owner):
        wanted, labels = _kind(kinds, DEFINITION_REVISION), {RGD_NAME: name}
    else:
        wanted, labels = _kind(kinds, INPUT_REVISION), {INSTANCE_NAME: name}
    # Those of a cluster-scoped instance are in the namespace of the controller, which is not known here.
    return ReadAll(wanted, ref.namespace, whole=True, labels=from_labels(labels))


def _own(owner: Obj, found: Iterable[Obj]) -> tuple[Obj, ...]:
    """Return the revisions of an object; those of a definition also where they are orphans that it is to adopt."""
    return tuple(
        one
        for one in found
        if meta.is_controlled_by(one, meta.uid(owner))
        or (is_definition(owner) and meta.controller_of(one) is None)
    )


def _inline(instance: Obj) -> Iterator[Obj]:
    """Yield the input revisions that are kept in the status of an instance, as objects without metadata."""
    history = (instance.get("status") or {}).get("inputRevisionHistory")
    for one in history if isinstance(history, list) else ():
        if isinstance(one, dict):
            yield {
                "spec": {
                    "inputRevision": one.get("revision"),
                    "rgdRevision": one.get("rgdRevision"),
                    "instanceSpec": one.get("instanceSpec"),
                },
                "status": {"createdAt": one.get("createdAt"), "propagationStatus": one.get("status")},
            }


def number(revision: Obj) -> int:
    """Return the number of a revision or of an input revision."""
    spec = revision.get("spec") or {}
    return whole(spec.get("revision") or spec.get("inputRevision"))


def _kind(kinds: Kinds, wanted: GroupKind) -> Kind:
    kind = kinds.preferred(wanted)
    if kind is None:
        raise SettingsError(f"the server does not serve the kind {wanted.kind}", hint=_INSTALL)
    return kind


def _listed(answers: Answers, query: Query) -> tuple[Obj, ...]:
    answer = answers.get(query)
    return answer.objects if isinstance(answer, Listed) else ()
