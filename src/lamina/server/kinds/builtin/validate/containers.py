"""Containers of a pod: regular, init and ephemeral ones."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from msgspec import Struct

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.types import Obj
from lamina.server.field_errors import (
    duplicate,
    each,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
    too_long,
)
from lamina.server.kinds.builtin.validate.environment import environment, environment_sources
from lamina.server.kinds.builtin.validate.parts import (
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
from lamina.server.kinds.builtin.validate.probes import lifecycle, probes
from lamina.server.kinds.builtin.validate.resources import requirements
from lamina.server.kinds.builtin.validate.security import container_security
from lamina.server.kinds.builtin.validate.volumes import devices, mounts

_RESTARTS = ("Always", "Never", "OnFailure")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_NOT_EPHEMERAL = (
    "ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules", "livenessProbe", "readinessProbe",
    "startupProbe", "lifecycle",
)  # fmt: skip


def all_containers(spec: Obj, path: str) -> Iterator[tuple[Obj, str]]:
    """Yield each container of a pod with its path."""
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(items(spec, field)):
            yield container, f"{path}.{field}[{index}]"


def restarts_always(container: Obj) -> bool:
    """Return whether an init container is a sidecar."""
    return container.get("restartPolicy") == "Always"


class Containers(Struct, frozen=True):
    """Validates containers, with the volumes and claims of their pod."""

    spec: Obj
    volumes: dict[str, Obj]
    claims: Collection[str]

    def check(self, path: str) -> list[Cause]:
        causes = self._regular(items(self.spec, "containers"), f"{path}.containers")
        causes += self._initial(items(self.spec, "initContainers"), f"{path}.initContainers")
        return causes + self._ephemeral(
            items(self.spec, "ephemeralContainers"), f"{path}.ephemeralContainers"
        )

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
        causes: list[Cause] = []
        seen: set[str] = set()
        for index, container in enumerate(containers):
            item_path = f"{path}[{index}]"
            causes += self._any(container, item_path)
            name = text(container, "name")
            if name in seen:
                causes.append(duplicate(f"{item_path}.name", name))
            seen.add(name)
            if container.get("lifecycle") is not None:
                causes += lifecycle(
                    container["lifecycle"], self._grace, self._system, f"{item_path}.lifecycle"
                )
            causes += probes(container, self._grace, item_path)
            causes += _restart_rules(container, item_path)
        return causes + _host_ports(containers, path)

    def _initial(self, containers: Sequence[Obj], path: str) -> list[Cause]:
        causes: list[Cause] = []
        seen = {text(container, "name") for container in items(self.spec, "containers")}
        for index, container in enumerate(containers):
            item_path = f"{path}[{index}]"
            causes += self._any(container, item_path)
            always = restarts_always(container)
            if always and items(container, "restartPolicyRules"):
                rule = "restartPolicyRules are not allowed for init containers with restart policy Always"
                causes.append(forbidden(f"{item_path}.restartPolicyRules", rule))
            elif not always:
                causes += _restart_rules(container, item_path)
            name = text(container, "name")
            if name in seen:
                causes.append(duplicate(f"{item_path}.name", name))
            elif name:
                seen.add(name)
            causes += _host_ports([container], path)
            if always:
                if container.get("lifecycle") is not None:
                    causes += lifecycle(
                        container["lifecycle"], self._grace, self._system, f"{item_path}.lifecycle"
                    )
                causes += probes(container, self._grace, item_path)
            else:
                rule = "may not be set for init containers without restartPolicy=Always"
                causes += (
                    forbidden(f"{item_path}.{field}", rule)
                    for field in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
                    if container.get(field) is not None
                )
        return causes

    def _ephemeral(self, containers: Sequence[Obj], path: str) -> list[Cause]:
        causes: list[Cause] = []
        others = {
            text(container, "name")
            for field in ("containers", "initContainers")
            for container in items(self.spec, field)
        }
        seen = set(others)
        for index, container in enumerate(containers):
            item_path = f"{path}[{index}]"
            causes += self._any(container, item_path) + image_has_no_padding(container, item_path)
            name, target = text(container, "name"), text(container, "targetContainerName")
            if name in seen:
                causes.append(duplicate(f"{item_path}.name", name))
            seen.add(name)
            if target and target not in others:
                causes.append(not_found(f"{item_path}.targetContainerName", target))
            rule = "cannot be set for an Ephemeral Container"
            causes += (
                forbidden(f"{item_path}.{field}", rule) for field in _NOT_EPHEMERAL if container.get(field)
            )
            for at, mount in enumerate(items(container, "volumeMounts")):
                causes += (
                    forbidden(f"{item_path}.volumeMounts[{at}].{field}", rule)
                    for field in ("subPath", "subPathExpr")
                    if mount.get(field)
                )
        return causes

    def _any(self, container: Obj, path: str) -> list[Cause]:
        causes = named(f"{path}.name", text(container, "name"), names.label)
        if not container.get("image"):
            causes.append(required(f"{path}.image"))
        policy = container.get("terminationMessagePolicy")
        if policy not in _MESSAGE_POLICIES:
            causes += chosen(f"{path}.terminationMessagePolicy", policy, _MESSAGE_POLICIES)
        if container.get("ports"):
            causes += _ports(container["ports"], f"{path}.ports")
        if container.get("env"):
            causes += environment(container, f"{path}.env")
        if container.get("envFrom"):
            causes += environment_sources(container, f"{path}.envFrom")
        if container.get("volumeMounts"):
            causes += mounts(container, self.volumes, f"{path}.volumeMounts")
        if container.get("volumeDevices"):
            causes += devices(container, self.volumes, f"{path}.volumeDevices")
        policy = container.get("imagePullPolicy")
        if policy not in PULL_POLICIES:
            causes += chosen(f"{path}.imagePullPolicy", policy, PULL_POLICIES)
        if container.get("resources"):
            causes += requirements(container["resources"], f"{path}.resources", self.claims)
        causes += self._resizing(items(container, "resizePolicy"), f"{path}.resizePolicy")
        host_users = self.spec.get("hostUsers") is not False
        context = container.get("securityContext")
        return causes + container_security(context, f"{path}.securityContext", host_users=host_users)

    def _resizing(self, policies: Sequence[Obj], path: str) -> list[Cause]:
        causes: list[Cause] = []
        seen: set[str] = set()
        for index, policy in enumerate(policies):
            resource, restart = text(policy, "resourceName"), text(policy, "restartPolicy")
            if resource in seen:
                causes.append(duplicate(f"{path}[{index}]", resource))
            seen.add(resource)
            causes += chosen(path, resource, ("cpu", "memory"))
            causes += chosen(path, restart, ("NotRequired", "RestartContainer"))
            if self.spec.get("restartPolicy") == "Never" and restart != "NotRequired":
                rule = "must be 'NotRequired' when `restartPolicy` is 'Never'"
                causes.append(invalid(path, restart, rule))
        return causes


def image_has_no_padding(container: Obj, path: str) -> list[Cause]:
    image = text(container, "image")
    if image == image.strip():
        return []
    return [invalid(f"{path}.image", image, "must not have leading or trailing whitespace")]


def _ports(ports: Sequence[Obj], path: str) -> list[Cause]:
    causes: list[Cause] = []
    seen: set[str] = set()
    for index, one in enumerate(ports):
        item_path = f"{path}[{index}]"
        name, number, protocol = text(one, "name"), count(one, "containerPort"), text(one, "protocol")
        if name:
            if problem := names.port_name(name):
                causes += each(f"{item_path}.name", name, problem)
            elif name in seen:
                causes.append(duplicate(f"{item_path}.name", name))
            else:
                seen.add(name)
        causes += (
            port(f"{item_path}.containerPort", number) if number else [required(f"{item_path}.containerPort")]
        )
        if host_port := count(one, "hostPort"):
            causes += port(f"{item_path}.hostPort", host_port)
        causes += chosen(f"{item_path}.protocol", protocol, PROTOCOLS)
    return causes


def _host_ports(containers: Sequence[Obj], path: str) -> list[Cause]:
    causes: list[Cause] = []
    seen: set[str] = set()
    for index, container in enumerate(containers):
        for at, one in enumerate(items(container, "ports")):
            if number := count(one, "hostPort"):
                taken = f"{text(one, 'protocol')}/{text(one, 'hostIP')}/{number}"
                if taken in seen:
                    causes.append(duplicate(f"{path}[{index}].ports[{at}].hostPort", taken))
                seen.add(taken)
    return causes


def _restart_rules(container: Obj, path: str) -> list[Cause]:
    policy, rules = container.get("restartPolicy"), items(container, "restartPolicyRules")
    if policy is None and not rules:
        return []
    causes = supported(f"{path}.restartPolicy", policy, _RESTARTS)
    if policy is None:
        causes.append(
            required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used")
        )
    if len(rules) > 20:
        causes.append(too_long(f"{path}.restartPolicyRules", 20))
    for index, rule in enumerate(rules):
        item_path = f"{path}.restartPolicyRules[{index}]"
        if text(rule, "action") != "Restart":
            causes.append(not_supported(f"{item_path}.action", text(rule, "action"), ("Restart",)))
        codes = rule.get("exitCodes")
        if codes is None:
            causes.append(required(f"{item_path}.exitCodes", "must be specified"))
            continue
        causes += supported(f"{item_path}.exitCodes.operator", text(codes, "operator"), ("In", "NotIn"))
        if len(items(codes, "values")) > 255:
            causes.append(too_long(f"{item_path}.exitCodes.values", 255))
    return causes


def file_key_volumes(spec: Obj, path: str) -> list[Cause]:
    """Check that variables read from files name an emptyDir volume."""
    volumes = {text(volume, "name"): volume for volume in items(spec, "volumes")}
    causes: list[Cause] = []
    for container, item_path in all_containers(spec, path):
        for index, variable in enumerate(items(container, "env")):
            ref = part(variable, "valueFrom").get("fileKeyRef")
            if ref is None:
                continue
            name = text(ref, "volumeName")
            where = f"{item_path}.env[{index}].valueFrom.fileKeyRef.volumeName"
            if name not in volumes:
                causes.append(not_found(where, name))
            elif volumes[name].get("emptyDir") is None:
                causes.append(invalid(where, name, "referenced volume must be of type emptyDir"))
    return causes
