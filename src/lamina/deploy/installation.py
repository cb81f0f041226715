"""One installation: its name, its namespace and its values."""

from __future__ import annotations

from msgspec import Struct

from lamina.deploy.values import Values
from lamina.objects.types import Made


class Installation(Struct, frozen=True, kw_only=True):
    """An installation: its name, its namespace, the version of Lamina, and its values."""

    name: str
    namespace: str
    version: str
    values: Values

    @property
    def account(self) -> str:
        return self.values.service_account.name or self.name

    @property
    def selector(self) -> dict[str, str]:
        """Return the labels that select its pods."""
        return {"app.kubernetes.io/name": "lamina", "app.kubernetes.io/instance": self.name}

    def metadata(
        self, name: str = "", *, namespaced: bool = True, labels: dict[str, str] | None = None
    ) -> Made:
        return {
            "name": name or self.name,
            **({"namespace": self.namespace} if namespaced else {}),
            "labels": {**self.selector, "app.kubernetes.io/version": self.version, **(labels or {})},
        }
