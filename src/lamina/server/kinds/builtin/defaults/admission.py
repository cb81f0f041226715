"""Defaults of webhooks and admission policies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from lamina.objects.types import Made


def _matches(matcher: Made) -> None:
    """Set the defaults that webhooks and match resources share."""
    matcher.setdefault("matchPolicy", "Equivalent")
    matcher.setdefault("namespaceSelector", {})
    matcher.setdefault("objectSelector", {})


def _validating(webhook: Made) -> None:
    webhook.setdefault("failurePolicy", "Fail")
    webhook.setdefault("timeoutSeconds", 10)
    _matches(webhook)


def _mutating(webhook: Made) -> None:
    _validating(webhook)
    webhook.setdefault("reinvocationPolicy", "Never")


def _rule(rule: Made) -> None:
    rule.setdefault("scope", "*")


def _service(reference: Made) -> None:
    reference.setdefault("port", 443)


def _policy_spec(spec: Made) -> None:
    spec.setdefault("failurePolicy", "Fail")


RULES: Final[Mapping[str, Callable[[Made], None]]] = {
    "admissionregistration/v1.ValidatingWebhook": _validating,
    "admissionregistration/v1.MutatingWebhook": _mutating,
    "admissionregistration/v1.RuleWithOperations": _rule,
    "admissionregistration/v1.NamedRuleWithOperations": _rule,
    "admissionregistration/v1.ServiceReference": _service,
    "admissionregistration/v1.ValidatingAdmissionPolicySpec": _policy_spec,
    "admissionregistration/v1.MatchResources": _matches,
}
