"""Probes and lifecycle hooks of containers."""

from __future__ import annotations

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.types import Obj
from lamina.server.field_errors import each, forbidden, invalid, not_negative, required
from lamina.server.kinds.builtin.validate.parts import (
    count,
    items,
    port_number_or_name,
    present,
    supported,
    text,
)

_SIGNALS = (
    "SIGABRT", "SIGALRM", "SIGBUS", "SIGCHLD", "SIGCLD", "SIGCONT", "SIGFPE", "SIGHUP", "SIGILL", "SIGINT", "SIGIO",
    "SIGIOT", "SIGKILL", "SIGPIPE", "SIGPOLL", "SIGPROF", "SIGPWR", "SIGQUIT", "SIGRTMAX",
    *sorted(f"SIGRTMAX-{number}" for number in range(1, 15)), "SIGRTMIN",
    *sorted(f"SIGRTMIN+{number}" for number in range(1, 16)), "SIGSEGV", "SIGSTKFLT", "SIGSTOP", "SIGSYS",
    "SIGTERM", "SIGTRAP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG", "SIGUSR1", "SIGUSR2", "SIGVTALRM", "SIGWINCH",
    "SIGXCPU", "SIGXFSZ",
)  # fmt: skip
_COUNTS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")


def probes(container: Obj, grace: int | None, path: str) -> list[Cause]:
    causes: list[Cause] = []
    for kind in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(kind)
        if probe is None:
            continue
        item_path = f"{path}.{kind}"
        causes += _handler(probe, grace, item_path, ("exec", "httpGet", "tcpSocket", "grpc"))
        for field in _COUNTS:
            causes += not_negative(f"{item_path}.{field}", probe.get(field))
        own_grace = probe.get("terminationGracePeriodSeconds")
        if own_grace is not None and own_grace <= 0:
            causes.append(
                invalid(f"{item_path}.terminationGracePeriodSeconds", own_grace, "must be greater than 0")
            )
        if kind == "readinessProbe":
            if own_grace is not None:
                rule = "must not be set for readinessProbes"
                causes.append(invalid(f"{item_path}.terminationGracePeriodSeconds", own_grace, rule))
        elif count(probe, "successThreshold") != 1:
            causes.append(
                invalid(f"{item_path}.successThreshold", count(probe, "successThreshold"), "must be 1")
            )
    return causes


def lifecycle(found: Obj, grace: int | None, system: str | None, path: str) -> list[Cause]:
    """Validate the lifecycle hooks of a container; `system` is the operating system of its pod."""
    causes: list[Cause] = []
    for kind in ("postStart", "preStop"):
        if found.get(kind) is not None:
            causes += _handler(
                found[kind], grace, f"{path}.{kind}", ("exec", "httpGet", "tcpSocket", "sleep")
            )
    signal = found.get("stopSignal")
    if signal is not None:
        item_path = f"{path}.stopSignal"
        if system is None:
            causes.append(forbidden(item_path, "may not be set for containers with empty `spec.os.name`"))
        elif system == "windows":
            causes += supported(item_path, signal, ("SIGKILL", "SIGTERM"))
        elif system == "linux":
            causes += supported(item_path, signal, _SIGNALS)
    return causes


def _handler(found: Obj, grace: int | None, path: str, kinds: tuple[str, ...]) -> list[Cause]:
    present_kinds = [kind for kind in kinds if found.get(kind) is not None]
    if not present_kinds:
        return [required(path, "must specify a handler type")]
    first, *others = present_kinds
    causes = _action(first, found[first], grace, f"{path}.{first}")
    causes += (forbidden(f"{path}.{kind}", "may not specify more than 1 handler type") for kind in others)
    return causes


def _action(kind: str, action: Obj, grace: int | None, path: str) -> list[Cause]:
    match kind:
        case "exec":
            return present(path, action, "command")
        case "httpGet":
            causes = present(path, action, "path")
            causes += port_number_or_name(f"{path}.port", action.get("port"))
            causes += supported(f"{path}.scheme", text(action, "scheme"), ("HTTP", "HTTPS"))
            for header in items(action, "httpHeaders"):
                causes += each(
                    f"{path}.httpHeaders", text(header, "name"), names.header(text(header, "name"))
                )
            return causes
        case "sleep":
            seconds = count(action, "seconds")
            if grace is None or 0 <= seconds <= grace:
                return []
            rule = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
            return [invalid(path, seconds, rule)]
        case _:
            return port_number_or_name(f"{path}.port", action.get("port"))
