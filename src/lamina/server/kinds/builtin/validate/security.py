"""Security contexts of pods and containers."""

from __future__ import annotations

import re
from typing import Any

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.types import Obj
from lamina.server.field_errors import duplicate, each, forbidden, invalid, not_supported, required, too_long
from lamina.server.kinds.builtin.validate.parts import items, part, relative_path, ruled, supported, text

_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_LAST_ID = 2**31 - 1
_SYSCTL = "([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_NET_BIOS = re.compile(r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}')
_DOMAIN = re.compile(
    r"[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*"
)
_USER_LETTERS = '"/\\:;|=,+*?<>@[]'


def _identity(path: str, number: int | None) -> list[Cause]:
    if number is None or 0 <= number <= _LAST_ID:
        return []
    return [invalid(path, number, names.inclusive_range_error(0, _LAST_ID))]


def pod_security(spec: Obj, path: str) -> list[Cause]:
    """Validate the security context of a pod; `path` is the context's."""
    context = spec.get("securityContext")
    if context is None:
        return []
    causes: list[Cause] = []
    for field in ("fsGroup", "runAsUser", "runAsGroup"):
        causes += _identity(f"{path}.{field}", context.get(field))
    for index, group in enumerate(items(context, "supplementalGroups")):
        causes += _identity(f"{path}.supplementalGroups[{index}]", group)
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        rule = "ShareProcessNamespace and HostPID cannot both be enabled"
        causes.append(invalid(f"{path}.shareProcessNamespace", True, rule))
    causes += _sysctls(spec, items(context, "sysctls"), f"{path}.sysctls")
    policies = ("Always", "OnRootMismatch")
    causes += supported(f"{path}.fsGroupChangePolicy", context.get("fsGroupChangePolicy"), policies)
    causes += _profiles(context, path)
    policies = ("Merge", "Strict")
    causes += supported(f"{path}.supplementalGroupsPolicy", context.get("supplementalGroupsPolicy"), policies)
    change = context.get("seLinuxChangePolicy")
    return causes + supported(f"{path}.seLinuxChangePolicy", change, ("Recursive",))


def _profiles(context: Obj, path: str) -> list[Cause]:
    causes = _seccomp(context.get("seccompProfile"), f"{path}.seccompProfile")
    causes += _windows(context.get("windowsOptions"), f"{path}.windowsOptions")
    return causes + _app_armor(context.get("appArmorProfile"), f"{path}.appArmorProfile")


def container_security(context: Obj | None, path: str, *, host_users: bool) -> list[Cause]:
    """Validate the security context of a container."""
    if context is None:
        return []
    causes = _identity(f"{path}.runAsUser", context.get("runAsUser"))
    causes += _identity(f"{path}.runAsGroup", context.get("runAsGroup"))
    mount = context.get("procMount")
    causes += supported(f"{path}.procMount", mount, ("Default", "Unmasked"))
    if mount == "Unmasked" and host_users:
        causes.append(invalid(f"{path}.procMount", mount, "`hostUsers` must be false to use `Unmasked`"))
    causes += _seccomp(context.get("seccompProfile"), f"{path}.seccompProfile")
    if context.get("allowPrivilegeEscalation") is False:
        rule = "cannot set `allowPrivilegeEscalation` to false and"
        if context.get("privileged"):
            causes.append(invalid(path, _printed(context), f"{rule} `privileged` to true"))
        if "CAP_SYS_ADMIN" in items(part(context, "capabilities"), "add"):
            causes.append(invalid(path, _printed(context), f"{rule} `capabilities.Add` CAP_SYS_ADMIN"))
    causes += _windows(context.get("windowsOptions"), f"{path}.windowsOptions")
    return causes + _app_armor(context.get("appArmorProfile"), f"{path}.appArmorProfile")


def _printed(context: Obj) -> dict[str, Any]:
    """Return a container's security context as kube-apiserver prints its internal type."""
    capabilities = context.get("capabilities")
    shown: Any = capabilities
    if capabilities is not None:
        shown = {"Add": capabilities.get("add"), "Drop": capabilities.get("drop")}
    return {
        "Capabilities": shown,
        "Privileged": context.get("privileged"),
        "SELinuxOptions": _fields(context.get("seLinuxOptions"), "User", "Role", "Type", "Level"),
        "WindowsOptions": _fields(
            context.get("windowsOptions"),
            "GMSACredentialSpecName",
            "GMSACredentialSpec",
            "RunAsUserName",
            "HostProcess",
        ),
        "RunAsUser": context.get("runAsUser"),
        "RunAsGroup": context.get("runAsGroup"),
        "RunAsNonRoot": context.get("runAsNonRoot"),
        "ReadOnlyRootFilesystem": context.get("readOnlyRootFilesystem"),
        "AllowPrivilegeEscalation": context.get("allowPrivilegeEscalation"),
        "ProcMount": context.get("procMount"),
        "SeccompProfile": _fields(context.get("seccompProfile"), "Type", "LocalhostProfile"),
        "AppArmorProfile": _fields(context.get("appArmorProfile"), "Type", "LocalhostProfile"),
    }


def _fields(found: Obj | None, *names_of_them: str) -> dict[str, Any] | None:
    """Return a struct with the server's own field names, absent ones included."""
    if found is None:
        return None
    known = {key.lower(): value for key, value in found.items()}
    return {name: known.get(name.lower()) for name in names_of_them}


def _sysctls(spec: Obj, found: Any, path: str) -> list[Cause]:
    causes: list[Cause] = []
    seen: set[str] = set()
    for index, sysctl in enumerate(found):
        item_path = f"{path}[{index}].name"
        name = text(sysctl, "name")
        if not name:
            causes.append(required(item_path))
        elif len(name) > 253 or not re.fullmatch(_SYSCTL, name):
            rule = f"must have at most 253 characters and match regex ^{_SYSCTL}$"
            causes.append(invalid(item_path, name, rule))
        elif name in seen:
            causes.append(duplicate(item_path, name))
        dotted = name.replace("/", ".")
        if spec.get("hostNetwork") and dotted.startswith("net."):
            causes.append(invalid(item_path, name, "may not be specified when 'hostNetwork' is true"))
        ipc = ("kernel.shm", "kernel.msg", "fs.mqueue.")
        if spec.get("hostIPC") and (dotted == "kernel.sem" or dotted.startswith(ipc)):
            causes.append(invalid(item_path, name, "may not be specified when 'hostIPC' is true"))
        seen.add(name)
    return causes


def _seccomp(profile: Obj | None, path: str) -> list[Cause]:
    if profile is None:
        return []
    kind, local = text(profile, "type"), profile.get("localhostProfile")
    causes: list[Cause] = []
    if not kind:
        causes.append(required(f"{path}.type", "type is required when seccompProfile is set"))
    elif kind not in _PROFILES:
        causes.append(not_supported(f"{path}.type", kind, _PROFILES))
    item_path = f"{path}.localhostProfile"
    if kind == "Localhost":
        if local is None:
            causes.append(required(item_path, "must be set when seccomp type is Localhost"))
        else:
            causes += relative_path(item_path, local)
    elif local is not None:
        shown = {"Type": kind, "LocalhostProfile": local}
        causes.append(invalid(item_path, shown, "can only be set when seccomp type is Localhost"))
    return causes


def _app_armor(profile: Obj | None, path: str) -> list[Cause]:
    if profile is None:
        return []
    kind, local = text(profile, "type"), profile.get("localhostProfile")
    item_path = f"{path}.localhostProfile"
    match kind:
        case "Localhost":
            if local is None:
                return [required(item_path, "must be set when AppArmor type is Localhost")]
            causes: list[Cause] = []
            if local != local.strip():
                causes.append(invalid(item_path, local, "must not be padded with whitespace"))
            elif not local:
                causes.append(required(item_path, "must be set when AppArmor type is Localhost"))
            return [*causes, too_long(item_path, 4095)] if len(local.encode()) > 4095 else causes
        case "RuntimeDefault" | "Unconfined":
            rule = "can only be set when AppArmor type is Localhost"
            return [invalid(item_path, local, rule)] if local is not None else []
        case "":
            return [required(f"{path}.type", "type is required when appArmorProfile is set")]
        case _:
            return [not_supported(f"{path}.type", kind, _PROFILES)]


def _windows(options: Obj | None, path: str) -> list[Cause]:
    if options is None:
        return []
    causes: list[Cause] = []
    if (name := options.get("gmsaCredentialSpecName")) is not None:
        causes += ruled(f"{path}.gmsaCredentialSpecName", name, names.subdomain)
    if (credentials := options.get("gmsaCredentialSpec")) is not None:
        item_path = f"{path}.gmsaCredentialSpec"
        if not credentials:
            causes.append(invalid(item_path, credentials, "gmsaCredentialSpec cannot be an empty string"))
        elif len(credentials.encode()) > 64 * 1024:
            causes.append(invalid(item_path, credentials, "gmsaCredentialSpec size must be under 64 KiB"))
    if (user := options.get("runAsUserName")) is not None:
        causes += each(f"{path}.runAsUserName", user, _user_problems(user))
    return causes


def _user_problems(name: str) -> list[str]:
    if not name:
        return ["runAsUserName cannot be an empty string"]
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in name):
        return ["runAsUserName cannot contain control characters"]
    if name.count("\\") > 1:
        return ["runAsUserName cannot contain more than one backslash"]
    domain, backslash, user = name.rpartition("\\")
    causes = []
    if len(domain) >= 256:
        causes.append("runAsUserName's Domain length must be under 256 characters")
    if backslash and not _NET_BIOS.fullmatch(domain) and not _DOMAIN.fullmatch(domain):
        causes.append("runAsUserName's Domain doesn't match the NetBios nor the DNS format")
    if not user:
        causes.append("runAsUserName's User cannot be empty")
    elif len(user) > 104:
        causes.append("runAsUserName's User length must not be longer than 104 characters")
    if user and not user.strip(". "):
        causes.append("runAsUserName's User cannot contain only periods or spaces")
    if any(letter in _USER_LETTERS for letter in user):
        causes.append(f"runAsUserName's User cannot contain the following characters: {_USER_LETTERS}")
    return causes


def operating_system(spec: Obj, path: str) -> list[Cause]:
    """Validate that a pod sets no field that its operating system does not support."""
    system = spec.get("os")
    if system is None:
        return []
    name = text(system, "name")
    if not name:
        return [required(f"{path}.os.name")]
    if name not in {"linux", "windows"}:
        return [not_supported(f"{path}.os", name, ("linux", "windows"))]
    containers = [
        (container, f"{path}.{field}[{index}].securityContext")
        for field in ("initContainers", "containers", "ephemeralContainers")
        for index, container in enumerate(items(spec, field))
    ]
    pod = part(spec, "securityContext")
    if name == "linux":
        rule = "windows options cannot be set for a linux pod"
        where = [(pod, f"{path}.securityContext")]
        where += [(part(container, "securityContext"), item_path) for container, item_path in containers]
        return [
            forbidden(f"{item_path}.windowsOptions", rule)
            for context, item_path in where
            if context.get("windowsOptions") is not None
        ]
    rule = "cannot be set for a windows pod"
    causes = [
        forbidden(f"{path}.{field}", rule)
        for field in ("hostUsers", "hostPID", "hostIPC", "shareProcessNamespace")
        if spec.get(field)
        or (spec.get(field) is not None and field in {"hostUsers", "shareProcessNamespace"})
    ]
    causes += (
        forbidden(f"{path}.securityContext.{field}", rule)
        for field in (
            "appArmorProfile", "seLinuxOptions", "seccompProfile", "fsGroup", "fsGroupChangePolicy", "sysctls",
            "runAsUser", "runAsGroup", "supplementalGroups", "supplementalGroupsPolicy", "seLinuxChangePolicy",
        )
        if pod.get(field) is not None
    )  # fmt: skip
    for container, item_path in containers:
        context = part(container, "securityContext")
        causes += (
            forbidden(f"{item_path}.{field}", rule)
            for field in (
                "appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities", "readOnlyRootFilesystem",
                "privileged", "allowPrivilegeEscalation", "procMount", "runAsUser", "runAsGroup",
            )
            if context.get(field) is not None
        )  # fmt: skip
    return causes
