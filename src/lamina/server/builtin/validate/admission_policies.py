"""ValidatingAdmissionPolicies and their bindings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.types import Obj
from lamina.server.builtin.validate.labels import label_selector
from lamina.server.builtin.validate.parts import items, named, part, ruled, supported, text
from lamina.server.builtin.validate.policy import conditions
from lamina.server.builtin.validate.webhooks import FAILURE_POLICIES, match_conditions, match_resources
from lamina.server.fields import duplicate, forbidden, invalid, not_supported, required
from lamina.server.policies.accepted import expression_causes

if TYPE_CHECKING:
    from lamina.server.policies.compiled import Expression, Validation

_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_RESERVED = frozenset(
    {
        "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import",
        "let", "loop", "package", "namespace", "return", "var", "void", "while",
    }
)  # fmt: skip


def policy(obj: Obj) -> list[Cause]:
    # Loaded with the first policy: expressions take longer to load than the rest of the server to start.
    from lamina.server.policies.compiled import compile_policy

    spec, name = part(obj, "spec"), text(part(obj, "metadata"), "name")
    said: list[Cause] = []
    failure = spec.get("failurePolicy")
    if failure is None:
        said.append(required("spec.failurePolicy"))
    said += supported("spec.failurePolicy", failure, FAILURE_POLICIES)
    if (kind := spec.get("paramKind")) is not None:
        said += _param_kind(kind, "spec.paramKind")
    constraints = spec.get("matchConstraints")
    if constraints is None:
        said.append(required("spec.matchConstraints"))
    else:
        said += match_resources(constraints, "spec.matchConstraints")
        if not items(constraints, "resourceRules"):
            said.append(required("spec.matchConstraints.resourceRules"))
    made = compile_policy(spec)
    said += match_conditions(items(spec, "matchConditions"), made.conditions, "spec.matchConditions")
    for index, variable in enumerate(items(spec, "variables")):
        said += _variable(variable, made.variables[text(variable, "name")], f"spec.variables[{index}]")
    validations, annotated = items(spec, "validations"), items(spec, "auditAnnotations")
    if not validations and not annotated:
        told = "validations or auditAnnotations must contain at least one item"
        return [*said, required("spec.validations", told), required("spec.auditAnnotations", told)]
    for index, validation in enumerate(validations):
        said += _validation(validation, made.validations[index], f"spec.validations[{index}]")
    return said + _audit_annotations(annotated, made.annotations, name, "spec.auditAnnotations")


def policy_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    if subresource != "status":
        return policy(new)
    status = part(new, "status")
    said: list[Cause] = []
    for index, warning in enumerate(items(part(status, "typeChecking"), "expressionWarnings")):
        here = f"status.typeChecking.expressionWarnings[{index}]"
        said += (required(f"{here}.{f}") for f in ("warning", "fieldRef") if not text(warning, f).strip())
    return said + conditions(items(status, "conditions"), "status.conditions")


def _param_kind(kind: Obj, path: str) -> list[Cause]:
    version, name = text(kind, "apiVersion"), text(kind, "kind")
    said: list[Cause] = []
    here = f"{path}.apiVersion"
    if not version:
        said.append(required(here))
    elif version.count("/") > 1:
        said.append(invalid(here, version, f"unexpected GroupVersion string: {version}"))
    else:
        group, _, short = version.rpartition("/")
        if group and (wrong := names.subdomain(group)):
            said.append(invalid(here, group, ",".join(wrong)))
        if not short:
            said.append(invalid(here, version, "version must be specified"))
        elif wrong := names.label_1035(short):
            said.append(invalid(here, short, ",".join(wrong)))
    if not name:
        said.append(required(f"{path}.kind"))
    elif wrong := names.label_1035(name.lower()):
        told = f"may have mixed case, but should otherwise match: {','.join(wrong)}"
        said.append(invalid(f"{path}.kind", name, told))
    return said


def _variable(variable: Obj, made: Expression, path: str) -> list[Cause]:
    name = text(variable, "name")
    said: list[Cause] = []
    if not name.strip():
        said.append(required(f"{path}.name", "name is not specified"))
    elif not re.fullmatch("[_a-zA-Z][_a-zA-Z0-9]*", name) or name in _RESERVED:
        said.append(invalid(f"{path}.name", name, "must be a valid CEL identifier"))
    if not text(variable, "expression").strip():
        said.append(required(f"{path}.expression", "expression is not specified"))
        return said
    return said + expression_causes(made, f"{path}.expression")


def _validation(validation: Obj, made: Validation, path: str) -> list[Cause]:
    said: list[Cause] = []
    if not text(validation, "expression").strip():
        said.append(required(f"{path}.expression", "expression is not specified"))
    else:
        said += expression_causes(made.check, f"{path}.expression")
    if made.message is not None:
        said += expression_causes(made.message, f"{path}.messageExpression")
    for field in ("messageExpression", "message"):
        value = text(validation, field)
        if value and not value.strip():
            said.append(invalid(f"{path}.{field}", value, "must be non-empty if specified"))
    message = text(validation, "message")
    if re.search(r"[\n\r]", message.strip()):
        said.append(invalid(f"{path}.message", message, "must not contain line breaks"))
    return said + supported(f"{path}.reason", validation.get("reason"), _REASONS)


def _audit_annotations(found: Sequence[Obj], made: Sequence[Expression], name: str, path: str) -> list[Cause]:
    said: list[Cause] = []
    if len(found) > 20:
        shown = [{"Key": text(o, "key"), "ValueExpression": text(o, "valueExpression")} for o in found]
        said.append(invalid(path, shown, "must not have more than 20 auditAnnotations"))
    seen: set[str] = set()
    for index, one in enumerate(found):
        here = f"{path}[{index}]"
        key, expression = text(one, "key"), text(one, "valueExpression").strip()
        said += ruled(f"{here}.key", f"{name}/{key}", names.qualified)
        if not expression:
            said.append(required(f"{here}.valueExpression", "valueExpression is not specified"))
        elif len(expression.encode()) > 5 * 1024:
            told = "must not exceed 5120 bytes in length"
            said.append(required(f"{here}.valueExpression", told))
        else:
            said += expression_causes(made[index], f"{here}.valueExpression")
        if key in seen:
            said.append(duplicate(f"{here}.key", key))
        seen.add(key)
    return said


def binding(obj: Obj) -> list[Cause]:
    spec = part(obj, "spec")
    said = named("spec.policyName", text(spec, "policyName"), names.subdomain)
    if (ref := spec.get("paramRef")) is not None:
        said += _param_ref(ref, "spec.paramRef")
    if (resources := spec.get("matchResources")) is not None:
        said += match_resources(resources, "spec.matchResources")
    actions, path = items(spec, "validationActions"), "spec.validationActions"
    for index, action in enumerate(actions):
        said += supported(f"{path}[{index}]", action, ("Audit", "Deny", "Warn"))
        if action in actions[:index]:
            said.append(duplicate(f"{path}[{index}]", action))
    if "Deny" in actions and "Warn" in actions:
        told = (
            "must not contain both Deny and Warn (repeating the same validation failure information "
            "in the API response and headers serves no purpose)"
        )
        said.append(invalid(path, list(actions), told))
    if not actions:
        said.append(required(path, "at least one validation action is required"))
    return said


def binding_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    return binding(new)


def _param_ref(ref: Obj, path: str) -> list[Cause]:
    name, selector = text(ref, "name"), ref.get("selector")
    said: list[Cause] = []
    both = "name and selector are mutually exclusive"
    if name:
        said += ruled(f"{path}.name", name, names.path_segment)
        if selector is not None:
            said.append(forbidden(f"{path}.name", both))
    said += label_selector(selector, f"{path}.selector")
    if name and selector is not None:
        said.append(forbidden(f"{path}.selector", both))
    if not name and selector is None:
        said.append(required(path, "one of name or selector must be specified"))
    action = ref.get("parameterNotFoundAction")
    here = f"{path}.parameterNotFoundAction"
    if not action:
        said.append(required(here))
    elif action not in {"Deny", "Allow"}:
        said.append(not_supported(here, action, ("Deny", "Allow")))
    return said
