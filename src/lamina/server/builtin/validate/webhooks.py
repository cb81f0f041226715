"""Webhook configurations, and the rules by which a webhook or a policy says what it is about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.types import Obj
from lamina.server.builtin.validate.labels import label_selector
from lamina.server.builtin.validate.parts import count, items, named, part, ruled, supported, text
from lamina.server.fields import duplicate, invalid, not_supported, required, too_many
from lamina.server.policies.accepted import expression_causes

if TYPE_CHECKING:
    from lamina.server.policies.compiled import Expression

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
    """Check a configuration; what an old one had wrong already is let through."""
    said: list[Cause] = []
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
        here = f"webhooks[{index}]"
        said += _webhook(hook, here, harmless=harmless, mutates=mutates)
        said += _review_versions(hook, f"{here}.admissionReviewVersions", known=known)
        name = text(hook, "name")
        if unique and name and name in seen:
            said.append(duplicate(f"{here}.name", name))
        seen.add(name)
    return said


def _webhook(hook: Obj, path: str, *, harmless: bool, mutates: bool) -> list[Cause]:
    said = _full_name(text(hook, "name"), f"{path}.name")
    for index, rule in enumerate(items(hook, "rules")):
        said += rule_with_operations(rule, f"{path}.rules[{index}]")
    said += supported(f"{path}.failurePolicy", hook.get("failurePolicy"), FAILURE_POLICIES)
    said += supported(f"{path}.matchPolicy", hook.get("matchPolicy"), MATCH_POLICIES)
    allowed = _HARMLESS if harmless else ("None", "NoneOnDryRun", "Some", "Unknown")
    effects = hook.get("sideEffects")
    if effects is None:
        said.append(required(f"{path}.sideEffects", f"must specify one of {', '.join(allowed)}"))
    said += supported(f"{path}.sideEffects", effects, allowed)
    seconds = hook.get("timeoutSeconds")
    if seconds is not None and not 1 <= seconds <= 30:
        told = "the timeout value must be between 1 and 30 seconds"
        said.append(invalid(f"{path}.timeoutSeconds", seconds, told))
    for field in ("namespaceSelector", "objectSelector"):
        said += label_selector(hook.get(field), f"{path}.{field}")
    if mutates:
        said += supported(f"{path}.reinvocationPolicy", hook.get("reinvocationPolicy"), ("IfNeeded", "Never"))
    said += client_config(part(hook, "clientConfig"), f"{path}.clientConfig")
    conditions = items(hook, "matchConditions")
    if conditions:
        # Loaded with the first expression: that takes longer than the rest of the server takes to start.
        from lamina.server.policies.compiled import compile_conditions

        said += match_conditions(conditions, compile_conditions(conditions), f"{path}.matchConditions")
    return said


def _full_name(name: str, path: str) -> list[Cause]:
    if not name:
        return [required(path)]
    if wrong := names.subdomain(name):
        return [invalid(path, name, ",".join(wrong))]
    if name.count(".") < 2:
        return [invalid(path, name, "should be a domain with at least three segments separated by dots")]
    return []


def _review_versions(hook: Obj, path: str, *, known: bool) -> list[Cause]:
    versions = items(hook, "admissionReviewVersions")
    if not versions:
        return [required(path, "must specify one of v1, v1beta1")]
    said: list[Cause] = []
    for index, version in enumerate(versions):
        if version in versions[:index]:
            said.append(invalid(f"{path}[{index}]", version, "duplicate version"))
            continue
        said += ruled(f"{path}[{index}]", version, names.label_1035)
    if known and not set(versions) & set(_VERSIONS):
        said.append(invalid(path, versions, "must include at least one of v1, v1beta1"))
    return said


def client_config(config: Obj, path: str) -> list[Cause]:
    """Check how a webhook is reached."""
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
    except ValueError as wrong:
        return [required(path, f"url must be a valid URL: {wrong}{form}")]
    said: list[Cause] = []
    user, _, host = found.netloc.rpartition("@")
    if found.scheme != "https":
        said.append(invalid(path, found.scheme, f"'https' is the only allowed URL scheme{form}"))
    if not host:
        said.append(invalid(path, host, f"host must be specified{form}"))
    if user:
        said.append(invalid(path, user, "user information is not permitted in the URL"))
    if found.fragment:
        said.append(invalid(path, found.fragment, "fragments are not permitted in the URL"))
    if found.query:
        said.append(invalid(path, found.query, "query parameters are not permitted in the URL"))
    return said


def _service(service: Obj, path: str) -> list[Cause]:
    said: list[Cause] = []
    # The server mixes the two up, and says of each what it means of the other.
    if not text(service, "namespace"):
        said.append(required(f"{path}.name"))
    if not text(service, "name"):
        said.append(required(f"{path}.namespace"))
    number = count(service, "port")
    if wrong := names.port_number(number):
        said.append(invalid(f"{path}.port", number, f"port is not valid: {', '.join(wrong)}"))
    where = text(service, "path")
    here = f"{path}.path"
    if where in {"", "/"}:
        return said
    if where == "//":
        return [*said, invalid(here, where, "segment[0] may not be empty")]
    if not where.startswith("/"):
        said.append(invalid(here, where, "must start with a '/'"))
    for index, step in enumerate(where[1:].removesuffix("/").split("/")):
        wrong = names.subdomain(step) if step else ("may not be empty",)
        colon = ":" if step else ""
        said += (invalid(here, where, f"segment[{index}]{colon} {one}") for one in wrong)
    return said


def rule_with_operations(rule: Obj, path: str) -> list[Cause]:
    """Check which operations on which resources a rule is about."""
    said: list[Cause] = []
    operations = items(rule, "operations")
    if not operations:
        said.append(required(f"{path}.operations"))
    if len(operations) > 1 and "*" in operations:
        told = "if '*' is present, must not specify other operations"
        said.append(invalid(f"{path}.operations", operations, told))
    for index, one in enumerate(operations):
        said += supported(f"{path}.operations[{index}]", one, _OPERATIONS)
    for field, what in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        found = items(rule, field)
        if not found:
            said.append(required(f"{path}.{field}"))
        if len(found) > 1 and "*" in found:
            told = f"if '*' is present, must not specify other {what}"
            said.append(invalid(f"{path}.{field}", found, told))
    said += (
        required(f"{path}.apiVersions[{index}]")
        for index, version in enumerate(items(rule, "apiVersions"))
        if not version
    )
    said += _resources(items(rule, "resources"), f"{path}.resources")
    return said + supported(f"{path}.scope", rule.get("scope"), ("*", "Cluster", "Namespaced"))


def _resources(found: Sequence[str], path: str) -> list[Cause]:
    said = [] if found else [required(path)]
    all_below: set[str] = set()
    everywhere: set[str] = set()
    plain = False
    for index, one in enumerate(found):
        here = f"{path}[{index}]"
        if not one:
            said.append(required(here))
            continue
        resource, slash, below = one.partition("/")
        if not slash:
            plain = one != "*"
            continue
        if resource in all_below:
            told = f"if '{resource}/*' is present, must not specify {one}"
            said.append(invalid(here, one, told))
        if below in everywhere:
            told = f"if '*/{below}' is present, must not specify {one}"
            said.append(invalid(here, one, told))
        if below == "*":
            all_below.add(resource)
        if resource == "*":
            everywhere.add(below)
    if len(found) > 1 and "*/*" in found:
        told = "if '*/*' is present, must not specify other resources"
        said.append(invalid(path, found, told))
    if "*" in found and plain:
        told = "if '*' is present, must not specify other resources without subresources"
        said.append(invalid(path, found, told))
    return said


def match_conditions(found: Sequence[Obj], made: Sequence[Expression], path: str) -> list[Cause]:
    """Check the names of match conditions and that each has an expression; `made` is what those were compiled to."""
    said = [too_many(path, len(found), 64)] if len(found) > 64 else []
    seen: set[str] = set()
    for index, one in enumerate(found):
        here = f"{path}[{index}]"
        if not text(one, "expression").strip():
            said.append(required(f"{here}.expression"))
        else:
            said += expression_causes(made[index], f"{here}.expression")
        name = text(one, "name")
        said += named(f"{here}.name", name, names.qualified)
        if name and name in seen:
            said.append(duplicate(f"{here}.name", name))
        seen.add(name)
    return said


def match_resources(found: Obj, path: str) -> list[Cause]:
    """Check which requests a policy or a binding is about."""
    said: list[Cause] = []
    policy = found.get("matchPolicy")
    if policy is None:
        said.append(required(f"{path}.matchPolicy"))
    elif policy not in MATCH_POLICIES:
        said.append(not_supported(f"{path}.matchPolicy", policy, MATCH_POLICIES))
    for field in ("namespaceSelector", "objectSelector"):
        selector = found.get(field)
        said += (
            [required(f"{path}.{field}")] if selector is None else label_selector(selector, f"{path}.{field}")
        )
    for field in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(items(found, field)):
            here = f"{path}.{field}[{index}]"
            wanted = items(rule, "resourceNames")
            for at, name in enumerate(wanted):
                said += ruled(f"{here}.resourceNames[{at}]", name, names.path_segment)
                if name in wanted[:at]:
                    said.append(duplicate(f"{here}.resourceNames[{at}]", name))
            said += rule_with_operations(rule, here)
    return said
