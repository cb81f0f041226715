"""The containers of a pod: those that run, those that run first, and those added to look around."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from msgspec import Struct

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.types import Obj
from lamina.server.builtin.validate.environment import environment, environment_sources
from lamina.server.builtin.validate.parts import (
    PROTOCOLS,
    PULL_POLICIES,
    chosen,
    count,
    items,
    named,
    part,
    port,
    supported,
    text,
)
from lamina.server.builtin.validate.probes import lifecycle, probes
from lamina.server.builtin.validate.resources import requirements
from lamina.server.builtin.validate.security import container_security
from lamina.server.builtin.validate.volumes import devices, mounts
from lamina.server.fields import (
    duplicate,
    each,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
    too_long,
)

_RESTARTS = ("Always", "Never", "OnFailure")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_NOT_EPHEMERAL = (
    "ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules", "livenessProbe", "readinessProbe",
    "startupProbe", "lifecycle",
)  # fmt: skip


def every(spec: Obj, path: str) -> Iterator[tuple[Obj, str]]:
    """Yield each container of a pod with its path."""
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(items(spec, field)):
            yield container, f"{path}.{field}[{index}]"


def restarts_always(container: Obj) -> bool:
    """Say whether an init container stays beside the others: whether it is a sidecar."""
    return container.get("restartPolicy") == "Always"


class Containers(Struct, frozen=True):
    """Checks containers; what they may refer to is their pod's."""

    spec: Obj
    volumes: dict[str, Obj]
    claims: Collection[str]

    def check(self, path: str) -> list[Cause]:
        said = self._regular(items(self.spec, "containers"), f"{path}.containers")
        said += self._initial(items(self.spec, "initContainers"), f"{path}.initContainers")
        return said + self._ephemeral(items(self.spec, "ephemeralContainers"), f"{path}.ephemeralContainers")

    @property
    def _grace(self) -> int | None:
        return self.spec.get("terminationGracePeriodSeconds")

    @property
    def _system(self) -> str | None:
        system = self.spec.get("os")
        return None if system is None else text(system, "name")

    def _regular(self, containers: Sequence[Obj], path: str) -> list[Cause]:
        if not containers:
            return [required(path)]
        said: list[Cause] = []
        seen: set[str] = set()
        for index, container in enumerate(containers):
            here = f"{path}[{index}]"
            said += self._any(container, here)
            name = text(container, "name")
            if name in seen:
                said.append(duplicate(f"{here}.name", name))
            seen.add(name)
            if container.get("lifecycle") is not None:
                said += lifecycle(container["lifecycle"], self._grace, self._system, f"{here}.lifecycle")
            said += probes(container, self._grace, here)
            said += _restart_rules(container, here)
        return said + _host_ports(containers, path)

    def _initial(self, containers: Sequence[Obj], path: str) -> list[Cause]:
        said: list[Cause] = []
        seen = {text(container, "name") for container in items(self.spec, "containers")}
        for index, container in enumerate(containers):
            here = f"{path}[{index}]"
            said += self._any(container, here)
            always = restarts_always(container)
            if always and items(container, "restartPolicyRules"):
                rule = "restartPolicyRules are not allowed for init containers with restart policy Always"
                said.append(forbidden(f"{here}.restartPolicyRules", rule))
            elif not always:
                said += _restart_rules(container, here)
            name = text(container, "name")
            if name in seen:
                said.append(duplicate(f"{here}.name", name))
            elif name:
                seen.add(name)
            said += _host_ports([container], path)
            if always:
                if container.get("lifecycle") is not None:
                    said += lifecycle(container["lifecycle"], self._grace, self._system, f"{here}.lifecycle")
                said += probes(container, self._grace, here)
            else:
                rule = "may not be set for init containers without restartPolicy=Always"
                said += (
                    forbidden(f"{here}.{field}", rule)
                    for field in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
                    if container.get(field) is not None
                )
        return said

    def _ephemeral(self, containers: Sequence[Obj], path: str) -> list[Cause]:
        said: list[Cause] = []
        others = {
            text(container, "name")
            for field in ("containers", "initContainers")
            for container in items(self.spec, field)
        }
        seen = set(others)
        for index, container in enumerate(containers):
            here = f"{path}[{index}]"
            said += self._any(container, here) + image_has_no_padding(container, here)
            name, target = text(container, "name"), text(container, "targetContainerName")
            if name in seen:
                said.append(duplicate(f"{here}.name", name))
            seen.add(name)
            if target and target not in others:
                said.append(not_found(f"{here}.targetContainerName", target))
            rule = "cannot be set for an Ephemeral Container"
            said += (forbidden(f"{here}.{field}", rule) for field in _NOT_EPHEMERAL if container.get(field))
            for at, mount in enumerate(items(container, "volumeMounts")):
                said += (
                    forbidden(f"{here}.volumeMounts[{at}].{field}", rule)
                    for field in ("subPath", "subPathExpr")
                    if mount.get(field)
                )
        return said

    def _any(self, container: Obj, path: str) -> list[Cause]:
        said = named(f"{path}.name", text(container, "name"), names.label)
        if not container.get("image"):
            said.append(required(f"{path}.image"))
        policy = container.get("terminationMessagePolicy")
        if policy not in _MESSAGE_POLICIES:
            said += chosen(f"{path}.terminationMessagePolicy", policy, _MESSAGE_POLICIES)
        if container.get("ports"):
            said += _ports(container["ports"], f"{path}.ports")
        if container.get("env"):
            said += environment(container, f"{path}.env")
        if container.get("envFrom"):
            said += environment_sources(container, f"{path}.envFrom")
        if container.get("volumeMounts"):
            said += mounts(container, self.volumes, f"{path}.volumeMounts")
        if container.get("volumeDevices"):
            said += devices(container, self.volumes, f"{path}.volumeDevices")
        policy = container.get("imagePullPolicy")
        if policy not in PULL_POLICIES:
            said += chosen(f"{path}.imagePullPolicy", policy, PULL_POLICIES)
        if container.get("resources"):
            said += requirements(container["resources"], f"{path}.resources", self.claims)
        said += self._resizing(items(container, "resizePolicy"), f"{path}.resizePolicy")
        host_users = self.spec.get("hostUsers") is not False
        context = container.get("securityContext")
        return said + container_security(context, f"{path}.securityContext", host_users=host_users)

    def _resizing(self, policies: Sequence[Obj], path: str) -> list[Cause]:
        said: list[Cause] = []
        seen: set[str] = set()
        for index, policy in enumerate(policies):
            resource, restart = text(policy, "resourceName"), text(policy, "restartPolicy")
            if resource in seen:
                said.append(duplicate(f"{path}[{index}]", resource))
            seen.add(resource)
            said += chosen(path, resource, ("cpu", "memory"))
            said += chosen(path, restart, ("NotRequired", "RestartContainer"))
            if self.spec.get("restartPolicy") == "Never" and restart != "NotRequired":
                rule = "must be 'NotRequired' when `restartPolicy` is 'Never'"
                said.append(invalid(path, restart, rule))
        return said


def image_has_no_padding(container: Obj, path: str) -> list[Cause]:
    image = text(container, "image")
    if image == image.strip():
        return []
    return [invalid(f"{path}.image", image, "must not have leading or trailing whitespace")]


def _ports(ports: Sequence[Obj], path: str) -> list[Cause]:
    said: list[Cause] = []
    seen: set[str] = set()
    for index, one in enumerate(ports):
        here = f"{path}[{index}]"
        name, number, protocol = text(one, "name"), count(one, "containerPort"), text(one, "protocol")
        if name:
            if wrong := names.port_name(name):
                said += each(f"{here}.name", name, wrong)
            elif name in seen:
                said.append(duplicate(f"{here}.name", name))
            else:
                seen.add(name)
        said += port(f"{here}.containerPort", number) if number else [required(f"{here}.containerPort")]
        if host_port := count(one, "hostPort"):
            said += port(f"{here}.hostPort", host_port)
        said += chosen(f"{here}.protocol", protocol, PROTOCOLS)
    return said


def _host_ports(containers: Sequence[Obj], path: str) -> list[Cause]:
    said: list[Cause] = []
    seen: set[str] = set()
    for index, container in enumerate(containers):
        for at, one in enumerate(items(container, "ports")):
            if number := count(one, "hostPort"):
                taken = f"{text(one, 'protocol')}/{text(one, 'hostIP')}/{number}"
                if taken in seen:
                    said.append(duplicate(f"{path}[{index}].ports[{at}].hostPort", taken))
                seen.add(taken)
    return said


def _restart_rules(container: Obj, path: str) -> list[Cause]:
    policy, rules = container.get("restartPolicy"), items(container, "restartPolicyRules")
    if policy is None and not rules:
        return []
    said = supported(f"{path}.restartPolicy", policy, _RESTARTS)
    if policy is None:
        said.append(
            required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used")
        )
    if len(rules) > 20:
        said.append(too_long(f"{path}.restartPolicyRules", 20))
    for index, rule in enumerate(rules):
        here = f"{path}.restartPolicyRules[{index}]"
        if text(rule, "action") != "Restart":
            said.append(not_supported(f"{here}.action", text(rule, "action"), ("Restart",)))
        codes = rule.get("exitCodes")
        if codes is None:
            said.append(required(f"{here}.exitCodes", "must be specified"))
            continue
        said += supported(f"{here}.exitCodes.operator", text(codes, "operator"), ("In", "NotIn"))
        if len(items(codes, "values")) > 255:
            said.append(too_long(f"{here}.exitCodes.values", 255))
    return said


def file_key_volumes(spec: Obj, path: str) -> list[Cause]:
    """Check that variables read from files name a volume that files can be written to first."""
    volumes = {text(volume, "name"): volume for volume in items(spec, "volumes")}
    said: list[Cause] = []
    for container, here in every(spec, path):
        for index, variable in enumerate(items(container, "env")):
            ref = part(variable, "valueFrom").get("fileKeyRef")
            if ref is None:
                continue
            name = text(ref, "volumeName")
            where = f"{here}.env[{index}].valueFrom.fileKeyRef.volumeName"
            if name not in volumes:
                said.append(not_found(where, name))
            elif volumes[name].get("emptyDir") is None:
                said.append(invalid(where, name, "referenced volume must be of type emptyDir"))
    return said
