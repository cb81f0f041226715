"""Webhook configurations and the match rules of webhooks and policies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.types import Obj
from lamina.server.field_errors import duplicate, invalid, not_supported, required, too_many
from lamina.server.kinds.builtin.admission_cel.expression_errors import expression_causes
from lamina.server.kinds.builtin.validate.labels import label_selector
from lamina.server.kinds.builtin.validate.parts import count, items, named, part, ruled, supported, text

if TYPE_CHECKING:
    from lamina.server.kinds.builtin.admission_cel.compiled import Expression

FAILURE_POLICIES = ("Fail", "Ignore")
MATCH_POLICIES = ("Equivalent", "Exact")
_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_HARMLESS = ("None", "NoneOnDryRun")
_VERSIONS = ("v1", "v1beta1")


def mutating(obj: Obj) -> list[Cause]:
    return _configuration(obj, None, mutates=True)


def validating(obj: Obj) -> list[Cause]:
    return _configuration(obj, None, mutates=False)


def mutating_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    return _configuration(new, old, mutates=True)


def validating_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    return _configuration(new, old, mutates=False)


def _configuration(obj: Obj, old: Obj | None, *, mutates: bool) -> list[Cause]:
    """Validate a configuration; what was invalid in the old one is accepted."""
    causes: list[Cause] = []
    were = items(old, "webhooks") if old else ()
    names_before = [text(one, "name") for one in were]
    unique = len(set(names_before)) == len(names_before)
    harmless = all(one.get("sideEffects") in _HARMLESS for one in were)
    known = all(
        not items(one, "admissionReviewVersions")
        or set(items(one, "admissionReviewVersions")) & set(_VERSIONS)
        for one in were
    )
    seen: set[str] = set()
    for index, hook in enumerate(items(obj, "webhooks")):
        item_path = f"webhooks[{index}]"
        causes += _webhook(hook, item_path, harmless=harmless, mutates=mutates)
        causes += _review_versions(hook, f"{item_path}.admissionReviewVersions", known=known)
        name = text(hook, "name")
        if unique and name and name in seen:
            causes.append(duplicate(f"{item_path}.name", name))
        seen.add(name)
    return causes


def _webhook(hook: Obj, path: str, *, harmless: bool, mutates: bool) -> list[Cause]:
    causes = _full_name(text(hook, "name"), f"{path}.name")
    for index, rule in enumerate(items(hook, "rules")):
        causes += rule_with_operations(rule, f"{path}.rules[{index}]")
    causes += supported(f"{path}.failurePolicy", hook.get("failurePolicy"), FAILURE_POLICIES)
    causes += supported(f"{path}.matchPolicy", hook.get("matchPolicy"), MATCH_POLICIES)
    allowed = _HARMLESS if harmless else ("None", "NoneOnDryRun", "Some", "Unknown")
    effects = hook.get("sideEffects")
    if effects is None:
        causes.append(required(f"{path}.sideEffects", f"must specify one of {', '.join(allowed)}"))
    causes += supported(f"{path}.sideEffects", effects, allowed)
    seconds = hook.get("timeoutSeconds")
    if seconds is not None and not 1 <= seconds <= 30:
        detail = "the timeout value must be between 1 and 30 seconds"
        causes.append(invalid(f"{path}.timeoutSeconds", seconds, detail))
    for field in ("namespaceSelector", "objectSelector"):
        causes += label_selector(hook.get(field), f"{path}.{field}")
    if mutates:
        causes += supported(
            f"{path}.reinvocationPolicy", hook.get("reinvocationPolicy"), ("IfNeeded", "Never")
        )
    causes += client_config(part(hook, "clientConfig"), f"{path}.clientConfig")
    conditions = items(hook, "matchConditions")
    if conditions:
        # Imported with the first expression, because CEL loads slower than the rest of the server.
        from lamina.server.kinds.builtin.admission_cel.compiled import compile_conditions

        causes += match_conditions(conditions, compile_conditions(conditions), f"{path}.matchConditions")
    return causes


def _full_name(name: str, path: str) -> list[Cause]:
    if not name:
        return [required(path)]
    if problem := names.subdomain(name):
        return [invalid(path, name, ",".join(problem))]
    if name.count(".") < 2:
        return [invalid(path, name, "should be a domain with at least three segments separated by dots")]
    return []


def _review_versions(hook: Obj, path: str, *, known: bool) -> list[Cause]:
    versions = items(hook, "admissionReviewVersions")
    if not versions:
        return [required(path, "must specify one of v1, v1beta1")]
    causes: list[Cause] = []
    for index, version in enumerate(versions):
        if version in versions[:index]:
            causes.append(invalid(f"{path}[{index}]", version, "duplicate version"))
            continue
        causes += ruled(f"{path}[{index}]", version, names.label_1035)
    if known and not set(versions) & set(_VERSIONS):
        causes.append(invalid(path, versions, "must include at least one of v1, v1beta1"))
    return causes


def client_config(config: Obj, path: str) -> list[Cause]:
    """Validate the clientConfig of a webhook."""
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        return [required(path, "exactly one of url or service is required")]
    if service is not None:
        return _service(service, f"{path}.service")
    return _url(url or "", f"{path}.url")


def _url(url: str, path: str) -> list[Cause]:
    form = "; desired format: https://host[/path]"
    try:
        found = urlsplit(url)
    except ValueError as problem:
        return [required(path, f"url must be a valid URL: {problem}{form}")]
    causes: list[Cause] = []
    user, _, host = found.netloc.rpartition("@")
    if found.scheme != "https":
        causes.append(invalid(path, found.scheme, f"'https' is the only allowed URL scheme{form}"))
    if not host:
        causes.append(invalid(path, host, f"host must be specified{form}"))
    if user:
        causes.append(invalid(path, user, "user information is not permitted in the URL"))
    if found.fragment:
        causes.append(invalid(path, found.fragment, "fragments are not permitted in the URL"))
    if found.query:
        causes.append(invalid(path, found.query, "query parameters are not permitted in the URL"))
    return causes


def _service(service: Obj, path: str) -> list[Cause]:
    causes: list[Cause] = []
    # kube-apiserver confuses name and namespace here, and so do its messages.
    if not text(service, "namespace"):
        causes.append(required(f"{path}.name"))
    if not text(service, "name"):
        causes.append(required(f"{path}.namespace"))
    number = count(service, "port")
    if problem := names.port_number(number):
        causes.append(invalid(f"{path}.port", number, f"port is not valid: {', '.join(problem)}"))
    where = text(service, "path")
    item_path = f"{path}.path"
    if where in {"", "/"}:
        return causes
    if where == "//":
        return [*causes, invalid(item_path, where, "segment[0] may not be empty")]
    if not where.startswith("/"):
        causes.append(invalid(item_path, where, "must start with a '/'"))
    for index, step in enumerate(where[1:].removesuffix("/").split("/")):
        problem = names.subdomain(step) if step else ("may not be empty",)
        colon = ":" if step else ""
        causes += (invalid(item_path, where, f"segment[{index}]{colon} {one}") for one in problem)
    return causes


def rule_with_operations(rule: Obj, path: str) -> list[Cause]:
    """Validate the operations and resources of a rule."""
    causes: list[Cause] = []
    operations = items(rule, "operations")
    if not operations:
        causes.append(required(f"{path}.operations"))
    if len(operations) > 1 and "*" in operations:
        detail = "if '*' is present, must not specify other operations"
        causes.append(invalid(f"{path}.operations", operations, detail))
    for index, one in enumerate(operations):
        causes += supported(f"{path}.operations[{index}]", one, _OPERATIONS)
    for field, what in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        found = items(rule, field)
        if not found:
            causes.append(required(f"{path}.{field}"))
        if len(found) > 1 and "*" in found:
            detail = f"if '*' is present, must not specify other {what}"
            causes.append(invalid(f"{path}.{field}", found, detail))
    causes += (
        required(f"{path}.apiVersions[{index}]")
        for index, version in enumerate(items(rule, "apiVersions"))
        if not version
    )
    causes += _resources(items(rule, "resources"), f"{path}.resources")
    return causes + supported(f"{path}.scope", rule.get("scope"), ("*", "Cluster", "Namespaced"))


def _resources(found: Sequence[str], path: str) -> list[Cause]:
    causes = [] if found else [required(path)]
    all_below: set[str] = set()
    everywhere: set[str] = set()
    plain = False
    for index, one in enumerate(found):
        item_path = f"{path}[{index}]"
        if not one:
            causes.append(required(item_path))
            continue
        resource, slash, below = one.partition("/")
        if not slash:
            plain = one != "*"
            continue
        if resource in all_below:
            detail = f"if '{resource}/*' is present, must not specify {one}"
            causes.append(invalid(item_path, one, detail))
        if below in everywhere:
            detail = f"if '*/{below}' is present, must not specify {one}"
            causes.append(invalid(item_path, one, detail))
        if below == "*":
            all_below.add(resource)
        if resource == "*":
            everywhere.add(below)
    if len(found) > 1 and "*/*" in found:
        detail = "if '*/*' is present, must not specify other resources"
        causes.append(invalid(path, found, detail))
    if "*" in found and plain:
        detail = "if '*' is present, must not specify other resources without subresources"
        causes.append(invalid(path, found, detail))
    return causes


def match_conditions(found: Sequence[Obj], made: Sequence[Expression], path: str) -> list[Cause]:
    """Validate the names of match conditions and their expressions; `made` are the compiled expressions."""
    causes = [too_many(path, len(found), 64)] if len(found) > 64 else []
    seen: set[str] = set()
    for index, one in enumerate(found):
        item_path = f"{path}[{index}]"
        if not text(one, "expression").strip():
            causes.append(required(f"{item_path}.expression"))
        else:
            causes += expression_causes(made[index], f"{item_path}.expression")
        name = text(one, "name")
        causes += named(f"{item_path}.name", name, names.qualified)
        if name and name in seen:
            causes.append(duplicate(f"{item_path}.name", name))
        seen.add(name)
    return causes


def match_resources(found: Obj, path: str) -> list[Cause]:
    """Validate the match resources of a policy or binding."""
    causes: list[Cause] = []
    policy = found.get("matchPolicy")
    if policy is None:
        causes.append(required(f"{path}.matchPolicy"))
    elif policy not in MATCH_POLICIES:
        causes.append(not_supported(f"{path}.matchPolicy", policy, MATCH_POLICIES))
    for field in ("namespaceSelector", "objectSelector"):
        selector = found.get(field)
        causes += (
            [required(f"{path}.{field}")] if selector is None else label_selector(selector, f"{path}.{field}")
        )
    for field in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(items(found, field)):
            item_path = f"{path}.{field}[{index}]"
            wanted = items(rule, "resourceNames")
            for at, name in enumerate(wanted):
                causes += ruled(f"{item_path}.resourceNames[{at}]", name, names.path_segment)
                if name in wanted[:at]:
                    causes.append(duplicate(f"{item_path}.resourceNames[{at}]", name))
            causes += rule_with_operations(rule, item_path)
    return causes
