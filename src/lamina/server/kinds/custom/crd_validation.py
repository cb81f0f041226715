"""
Validation of CustomResourceDefinitions.

kube-apiserver validates the internal version of a CRD, in which what all versions share
is beside the versions instead of in each. Messages name fields of that form, so a schema
that all versions share is at `spec.validation`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeVar

import orjson

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.go_quote import is_printable, json_text
from lamina.objects.types import Made, Obj
from lamina.server.field_errors import forbidden, invalid, not_supported, required
from lamina.server.kinds.custom.approval import validate_approval
from lamina.server.kinds.custom.columns import validate_columns, validate_selectable, validate_subresources
from lamina.server.kinds.custom.conversion import validate_conversion
from lamina.server.kinds.custom.document import Document, has_rules, internal, internal_names, walk
from lamina.server.kinds.custom.formats import format_check
from lamina.server.kinds.custom.go_values import same
from lamina.server.kinds.custom.internal_version import printed_versions, to_internal
from lamina.server.kinds.custom.keywords import validate_keywords
from lamina.server.kinds.custom.names import is_established
from lamina.server.kinds.custom.schema_defaults import validate_defaults
from lamina.server.kinds.custom.structural import structural_error, validate_structure

T = TypeVar("T")

_AT_ROOT: Final = (
    "Description", "Type", "Format", "Title", "Maximum", "ExclusiveMaximum", "Minimum", "ExclusiveMinimum",
    "MaxLength", "MinLength", "Pattern", "MaxItems", "MinItems", "UniqueItems", "MultipleOf", "Required", "Items",
    "Properties", "ExternalDocs", "Example", "XPreserveUnknownFields", "XValidations",
)  # fmt: skip
"""The keywords that are allowed at the root of a schema with a status subresource."""


def validate_create(crd: Obj) -> list[Cause]:
    """Return the errors of a new CRD, except for its metadata."""
    return [*_name(crd), *_whole(crd, None)]


def validate_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    """Return the errors of an updated CRD, except for its metadata."""
    if subresource == "status":
        return list(_names((new.get("status") or {}).get("acceptedNames") or {}, "status.acceptedNames"))
    return _whole(new, old)


def warn(new: Obj, old: Obj | None) -> list[str]:
    """Return a warning for each new unknown format."""
    known = _cached(_unknown_formats, old) if old is not None else ()
    return [f'unrecognized format "{name}"' for name in _cached(_unknown_formats, new) if name not in known]


def _cached(check: Callable[[Obj], Iterable[T]], crd: Obj) -> tuple[T, ...]:
    """Return cached errors or warnings of a spec: the same CRDs are written to many clusters, and are slow to check."""
    try:
        spec = orjson.dumps(crd["spec"])
    except orjson.JSONEncodeError:
        return tuple(check(crd["spec"]))
    results: tuple[T, ...] = _check_spec(check, spec)
    return results


@lru_cache(maxsize=128)
def _check_spec(check: Callable[[Obj], Iterable[Any]], spec: bytes) -> tuple[Any, ...]:
    return tuple(check(orjson.loads(spec)))


def _unknown_formats(spec: Obj) -> Iterator[str]:
    shared, versions = to_internal(spec)
    for schema in (shared.get("schema"), *(version.get("schema") for version in versions)):
        for node in walk((schema or {}).get("openAPIV3Schema") or {}):
            if node.get("type") == "string" and "format" in node and format_check(node["format"]) is None:
                yield node["format"]


def _name(crd: Obj) -> Iterator[Cause]:
    spec, name = crd["spec"], crd["metadata"].get("name") or ""
    if not name:
        # A missing name is reported by the metadata validation.
        return
    for complaint in names.subdomain(name):
        yield invalid("metadata.name", name, complaint)
    wanted = f"{spec['names'].get('plural') or ''}.{spec.get('group') or ''}"
    if name != wanted:
        yield invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')


def _whole(crd: Obj, old: Obj | None) -> list[Cause]:
    spec, status = crd["spec"], crd.get("status") or {}
    causes = [*(_cached(_fresh, crd) if old is None else _spec(crd, old))]
    if old is not None:
        causes += _immutable(spec, old)
    causes += _names(status.get("acceptedNames") or {}, "status.acceptedNames")
    causes += _stored_versions(status.get("storedVersions") or [], spec.get("versions") or [])
    causes += validate_approval(crd, old)
    if spec.get("preserveUnknownFields") and not (
        old is not None and old["spec"].get("preserveUnknownFields")
    ):
        detail = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true "
            "in spec.versions[*].schema instead"
        )
        causes.append(invalid("spec.preserveUnknownFields", True, detail))
    return causes


def _fresh(spec: Obj) -> Iterator[Cause]:
    return _spec({"spec": spec}, None)


def _spec(crd: Obj, old: Obj | None) -> Iterator[Cause]:
    spec = crd["spec"]
    shared, versions = to_internal(spec)
    known = _known(old)
    yield from _group(spec.get("group") or "")
    scope = spec.get("scope") or ""
    if not scope:
        yield required("spec.scope")
    elif scope not in ("Cluster", "Namespaced"):
        yield not_supported("spec.scope", scope, ("Cluster", "Namespaced"))
    if _document(shared) is None:
        for index, version in enumerate(versions):
            if _document(version) is None:
                yield required(f"spec.versions[{index}].schema.openAPIV3Schema")
    if spec.get("preserveUnknownFields") and _has_defaults([shared, *versions]):
        detail = "must be false in order to use defaults in the schema"
        yield invalid("spec.preserveUnknownFields", True, detail)
    per_version = any("subresources" in version for version in versions)
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}]"
        if complaints := names.label_1035(version.get("name") or ""):
            yield invalid(f"{path}.name", version.get("name") or "", ",".join(complaints))
        below = version.get("subresources") if per_version else shared.get("subresources")
        yield from _version(version, path, known, has_status="status" in (below or {}))
    yield from _of_versions(versions, printed_versions(spec, versions))
    yield from _version_field(versions)
    yield from _required_names(spec["names"])
    yield from _names(spec["names"], "spec.names")
    subresources = [shared.get("subresources"), *(version.get("subresources") for version in versions)]
    any_status = any("status" in (below or {}) for below in subresources)
    yield from _schema(_document(shared), "spec.validation", known, has_status=any_status)
    yield from validate_subresources(shared.get("subresources") or {}, "spec.subresources")
    yield from validate_columns(shared.get("additionalPrinterColumns") or (), "spec.additionalPrinterColumns")
    if selectable := shared.get("selectableFields"):
        if shared.get("schema") is None:
            yield invalid("spec.selectableFields", "", "may only be set when validations.schema is included")
        else:
            yield from _selectable(selectable, _document(shared), "spec")
    yield from validate_conversion(crd, old, was_established=old is not None and is_established(old))


def _document(holder: Mapping[str, Any]) -> Document | None:
    found: Document | None = (holder.get("schema") or {}).get("openAPIV3Schema")
    return found


def _known(crd: Obj | None) -> list[Document | None]:
    """Return the schemas of a CRD that is stored already."""
    if crd is None:
        return []
    shared, versions = to_internal(crd["spec"])
    return [_document(holder) for holder in (shared, *versions)]


def _has_defaults(holders: list[Made]) -> bool:
    return any("default" in node for holder in holders for node in walk(_document(holder) or {}))


def _group(group: str) -> Iterator[Cause]:
    if not group:
        yield required("spec.group")
    elif complaints := names.subdomain(group):
        yield invalid("spec.group", group, ",".join(complaints))
    elif "." not in group:
        yield invalid("spec.group", group, "should be a domain with at least one dot")


def _version(
    version: Mapping[str, Any], path: str, known: Sequence[Document | None], *, has_status: bool
) -> Iterator[Cause]:
    warning = version.get("deprecationWarning")
    for complaint in _deprecation(bool(version.get("deprecated")), warning):
        # The value is a pointer, so it is printed as JSON and not as a Go string.
        shown = f"Invalid value: {json_text(warning)}: {complaint}"
        yield Cause("FieldValueInvalid", shown, f"{path}.deprecationWarning")
    yield from _schema(_document(version), f"{path}.schema", known, has_status=has_status)
    yield from validate_subresources(version.get("subresources") or {}, f"{path}.subresources")
    columns = version.get("additionalPrinterColumns") or ()
    yield from validate_columns(columns, f"{path}.additionalPrinterColumns")
    if selectable := version.get("selectableFields"):
        document = _document(version)
        if document is None:
            detail = "may only be set when `version.schema.openAPIV3Schema` is not included"
            yield invalid(f"{path}.selectableFields", "", detail)
        else:
            yield from _selectable(selectable, document, path)


def _selectable(fields: list[Made], document: Document | None, path: str) -> Iterator[Cause]:
    problem = structural_error(document) if document is not None else None
    if problem is not None:
        yield invalid(f"{path}.schema.openAPIV3Schema", "", problem)
    elif document is not None:
        yield from validate_selectable(fields, document, f"{path}.selectableFields")


def _deprecation(deprecated: bool, warning: str | None) -> Iterator[str]:
    if warning is None:
        return
    if not deprecated:
        yield "can only be set for deprecated versions"
        return
    if len(warning.encode()) > 256:
        yield "must be <= 256 characters long"
    if not warning:
        yield "must not be an empty string"
    position = 0
    for character in warning:
        if not is_printable(character):
            what = "must only contain printable UTF-8 characters; non-printable character found at index"
            yield f"{what} {position}"
            return
        position += len(character.encode())


def _schema(
    document: Document | None, path: str, known: Sequence[Document | None], *, has_status: bool
) -> Iterator[Cause]:
    """Yield the errors of a schema; the rules of a `known` one were accepted before."""
    if document is None:
        return
    is_known = any(one is not None and same(one, document) for one in known)
    path = f"{path}.openAPIV3Schema"
    results = list(_root(document, path, has_status=has_status))
    unreadable = structural_error(document)
    shapeless: list[Cause] = []
    if unreadable is None:
        shapeless = validate_structure(document, path) or validate_defaults(document, path)
        results += shapeless
    odd = validate_keywords(document, path)
    results += odd
    if not results and unreadable is not None:
        # What cannot be converted has mostly been reported with a better path.
        results.append(invalid(path, "", unreadable))
    yield from results
    if unreadable is None and not shapeless and not is_known and has_rules(document):
        # Loaded with the first rule, because CEL loads slower than the rest of the server.
        from lamina.server.kinds.custom.cel_rules.check_crd import validate_rules

        yield from validate_rules(document, path, [cause.field for cause in odd])


def _root(document: Document, path: str, *, has_status: bool) -> Iterator[Cause]:
    if has_status:
        for name in internal_names(document):
            if name == "Type" and document["type"] != "object":
                yield invalid(
                    f"{path}.type",
                    document["type"],
                    'only "object" is allowed as the type at the root of the schema '
                    "if the status subresource is enabled",
                )
                break
            if name not in _AT_ROOT:
                allowed = " ".join(_AT_ROOT)
                yield invalid(
                    path,
                    internal(document),
                    f"only [{allowed}] fields are allowed at the root of the schema "
                    "if the status subresource is enabled",
                )
                break
    if document.get("nullable"):
        yield forbidden(f"{path}.nullable", "nullable cannot be true at the root")


def _of_versions(versions: list[Made], shown: list[Made] | None) -> Iterator[Cause]:
    called = [version.get("name") for version in versions]
    if len(set(called)) != len(called):
        yield invalid("spec.versions", shown, "must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        detail = "must have exactly one version marked as storage version"
        yield invalid("spec.versions", shown, detail)


def _version_field(versions: list[Made]) -> Iterator[Cause]:
    """Yield the errors of the internal field that repeats the name of the first version."""
    first = (versions[0].get("name") or "") if versions else ""
    if first and (complaints := names.label_1035(first)):
        yield invalid("spec.version", first, ",".join(complaints))


def _required_names(called: Mapping[str, Any]) -> Iterator[Cause]:
    for field in ("plural", "singular", "kind", "listKind"):
        if not called.get(field):
            yield required(f"spec.names.{field}")


def _names(called: Mapping[str, Any], path: str) -> Iterator[Cause]:
    for field in ("plural", "singular"):
        name = called.get(field) or ""
        if name and (complaints := names.label_1035(name)):
            yield invalid(f"{path}.{field}", name, ",".join(complaints))
    for field in ("kind", "listKind"):
        name = called.get(field) or ""
        if name and (complaints := names.label_1035(name.lower())):
            detail = "may have mixed case, but should otherwise match: " + ",".join(complaints)
            yield invalid(f"{path}.{field}", name, detail)
    yield from _labels(called.get("shortNames") or (), f"{path}.shortNames")
    if called.get("kind") and called["kind"] == called.get("listKind"):
        yield invalid(f"{path}.listKind", called["listKind"], "kind and listKind may not be the same")
    yield from _labels(called.get("categories") or (), f"{path}.categories")


def _labels(called: Sequence[str], path: str) -> Iterator[Cause]:
    for index, name in enumerate(called):
        if complaints := names.label_1035(name):
            yield invalid(f"{path}[{index}]", name, ",".join(complaints))


def _immutable(spec: Mapping[str, Any], old: Obj) -> Iterator[Cause]:
    before = old["spec"]
    pairs: list[tuple[str, Any, Any]] = []
    if is_established(old):
        pairs.append(("scope", spec.get("scope"), before.get("scope")))
        pairs.append(("names.kind", spec["names"].get("kind"), before["names"].get("kind")))
    pairs.append(("group", spec.get("group"), before.get("group")))
    pairs.append(("names.plural", spec["names"].get("plural"), before["names"].get("plural")))
    for field, now, then in pairs:
        if now != then:
            yield invalid(f"spec.{field}", now or "", "field is immutable")


def _stored_versions(stored: list[str], versions: Sequence[Mapping[str, Any]]) -> Iterator[Cause]:
    path = "status.storedVersions"
    if not stored:
        yield invalid(path, None, "must have at least one stored version")
        return
    known = {version.get("name") or "" for version in versions}
    for version in versions:
        if version.get("storage") and version.get("name") not in stored:
            yield invalid(path, stored, f"must have the storage version {version.get('name') or ''}")
    for index, name in enumerate(stored):
        if name not in known:
            yield invalid(
                f"{path}[{index}]",
                name,
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                "spec.versions until a storage migration ensures no data remains persisted in "
                f"{name} and removes {name} from status.storedVersions",
            )
