"""ValidatingAdmissionPolicies and their bindings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.types import Obj
from lamina.server.field_errors import duplicate, forbidden, invalid, not_supported, required
from lamina.server.kinds.builtin.admission_cel.expression_errors import expression_causes
from lamina.server.kinds.builtin.validate.labels import label_selector
from lamina.server.kinds.builtin.validate.parts import items, named, part, ruled, supported, text
from lamina.server.kinds.builtin.validate.policy import conditions
from lamina.server.kinds.builtin.validate.webhooks import FAILURE_POLICIES, match_conditions, match_resources

if TYPE_CHECKING:
    from lamina.server.kinds.builtin.admission_cel.compiled import Expression, Validation

_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_RESERVED = frozenset(
    {
        "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import",
        "let", "loop", "package", "namespace", "return", "var", "void", "while",
    }
)  # fmt: skip


def policy(obj: Obj) -> list[Cause]:
    # Loaded with the first policy, because CEL loads slower than the rest of the server.
    from lamina.server.kinds.builtin.admission_cel.compiled import compile_policy

    spec, name = part(obj, "spec"), text(part(obj, "metadata"), "name")
    causes: list[Cause] = []
    failure = spec.get("failurePolicy")
    if failure is None:
        causes.append(required("spec.failurePolicy"))
    causes += supported("spec.failurePolicy", failure, FAILURE_POLICIES)
    if (kind := spec.get("paramKind")) is not None:
        causes += _param_kind(kind, "spec.paramKind")
    constraints = spec.get("matchConstraints")
    if constraints is None:
        causes.append(required("spec.matchConstraints"))
    else:
        causes += match_resources(constraints, "spec.matchConstraints")
        if not items(constraints, "resourceRules"):
            causes.append(required("spec.matchConstraints.resourceRules"))
    made = compile_policy(spec)
    causes += match_conditions(items(spec, "matchConditions"), made.conditions, "spec.matchConditions")
    for index, variable in enumerate(items(spec, "variables")):
        causes += _variable(variable, made.variables[text(variable, "name")], f"spec.variables[{index}]")
    validations, annotated = items(spec, "validations"), items(spec, "auditAnnotations")
    if not validations and not annotated:
        detail = "validations or auditAnnotations must contain at least one item"
        return [*causes, required("spec.validations", detail), required("spec.auditAnnotations", detail)]
    for index, validation in enumerate(validations):
        causes += _validation(validation, made.validations[index], f"spec.validations[{index}]")
    return causes + _audit_annotations(annotated, made.annotations, name, "spec.auditAnnotations")


def policy_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    if subresource != "status":
        return policy(new)
    status = part(new, "status")
    causes: list[Cause] = []
    for index, warning in enumerate(items(part(status, "typeChecking"), "expressionWarnings")):
        item_path = f"status.typeChecking.expressionWarnings[{index}]"
        causes += (
            required(f"{item_path}.{f}") for f in ("warning", "fieldRef") if not text(warning, f).strip()
        )
    return causes + conditions(items(status, "conditions"), "status.conditions")


def _param_kind(kind: Obj, path: str) -> list[Cause]:
    version, name = text(kind, "apiVersion"), text(kind, "kind")
    causes: list[Cause] = []
    item_path = f"{path}.apiVersion"
    if not version:
        causes.append(required(item_path))
    elif version.count("/") > 1:
        causes.append(invalid(item_path, version, f"unexpected GroupVersion string: {version}"))
    else:
        group, _, short = version.rpartition("/")
        if group and (problem := names.subdomain(group)):
            causes.append(invalid(item_path, group, ",".join(problem)))
        if not short:
            causes.append(invalid(item_path, version, "version must be specified"))
        elif problem := names.label_1035(short):
            causes.append(invalid(item_path, short, ",".join(problem)))
    if not name:
        causes.append(required(f"{path}.kind"))
    elif problem := names.label_1035(name.lower()):
        detail = f"may have mixed case, but should otherwise match: {','.join(problem)}"
        causes.append(invalid(f"{path}.kind", name, detail))
    return causes


def _variable(variable: Obj, made: Expression, path: str) -> list[Cause]:
    name = text(variable, "name")
    causes: list[Cause] = []
    if not name.strip():
        causes.append(required(f"{path}.name", "name is not specified"))
    elif not re.fullmatch("[_a-zA-Z][_a-zA-Z0-9]*", name) or name in _RESERVED:
        causes.append(invalid(f"{path}.name", name, "must be a valid CEL identifier"))
    if not text(variable, "expression").strip():
        causes.append(required(f"{path}.expression", "expression is not specified"))
        return causes
    return causes + expression_causes(made, f"{path}.expression")


def _validation(validation: Obj, made: Validation, path: str) -> list[Cause]:
    causes: list[Cause] = []
    if not text(validation, "expression").strip():
        causes.append(required(f"{path}.expression", "expression is not specified"))
    else:
        causes += expression_causes(made.check, f"{path}.expression")
    if made.message is not None:
        causes += expression_causes(made.message, f"{path}.messageExpression")
    for field in ("messageExpression", "message"):
        value = text(validation, field)
        if value and not value.strip():
            causes.append(invalid(f"{path}.{field}", value, "must be non-empty if specified"))
    message = text(validation, "message")
    if re.search(r"[\n\r]", message.strip()):
        causes.append(invalid(f"{path}.message", message, "must not contain line breaks"))
    return causes + supported(f"{path}.reason", validation.get("reason"), _REASONS)


def _audit_annotations(found: Sequence[Obj], made: Sequence[Expression], name: str, path: str) -> list[Cause]:
    causes: list[Cause] = []
    if len(found) > 20:
        shown = [{"Key": text(o, "key"), "ValueExpression": text(o, "valueExpression")} for o in found]
        causes.append(invalid(path, shown, "must not have more than 20 auditAnnotations"))
    seen: set[str] = set()
    for index, one in enumerate(found):
        item_path = f"{path}[{index}]"
        key, expression = text(one, "key"), text(one, "valueExpression").strip()
        causes += ruled(f"{item_path}.key", f"{name}/{key}", names.qualified)
        if not expression:
            causes.append(required(f"{item_path}.valueExpression", "valueExpression is not specified"))
        elif len(expression.encode()) > 5 * 1024:
            detail = "must not exceed 5120 bytes in length"
            causes.append(required(f"{item_path}.valueExpression", detail))
        else:
            causes += expression_causes(made[index], f"{item_path}.valueExpression")
        if key in seen:
            causes.append(duplicate(f"{item_path}.key", key))
        seen.add(key)
    return causes


def binding(obj: Obj) -> list[Cause]:
    spec = part(obj, "spec")
    causes = named("spec.policyName", text(spec, "policyName"), names.subdomain)
    if (ref := spec.get("paramRef")) is not None:
        causes += _param_ref(ref, "spec.paramRef")
    if (resources := spec.get("matchResources")) is not None:
        causes += match_resources(resources, "spec.matchResources")
    actions, path = items(spec, "validationActions"), "spec.validationActions"
    for index, action in enumerate(actions):
        causes += supported(f"{path}[{index}]", action, ("Audit", "Deny", "Warn"))
        if action in actions[:index]:
            causes.append(duplicate(f"{path}[{index}]", action))
    if "Deny" in actions and "Warn" in actions:
        detail = (
            "must not contain both Deny and Warn (repeating the same validation failure information "
            "in the API response and headers serves no purpose)"
        )
        causes.append(invalid(path, list(actions), detail))
    if not actions:
        causes.append(required(path, "at least one validation action is required"))
    return causes


def binding_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    return binding(new)


def _param_ref(ref: Obj, path: str) -> list[Cause]:
    name, selector = text(ref, "name"), ref.get("selector")
    causes: list[Cause] = []
    both = "name and selector are mutually exclusive"
    if name:
        causes += ruled(f"{path}.name", name, names.path_segment)
        if selector is not None:
            causes.append(forbidden(f"{path}.name", both))
    causes += label_selector(selector, f"{path}.selector")
    if name and selector is not None:
        causes.append(forbidden(f"{path}.selector", both))
    if not name and selector is None:
        causes.append(required(path, "one of name or selector must be specified"))
    action = ref.get("parameterNotFoundAction")
    item_path = f"{path}.parameterNotFoundAction"
    if not action:
        causes.append(required(item_path))
    elif action not in {"Deny", "Allow"}:
        causes.append(not_supported(item_path, action, ("Deny", "Allow")))
    return causes
