"""
Warnings about accepted objects, with Kubernetes' messages.

They become Warning headers. On update, warnings are repeated only if the relevant part
changed: a status write has none, and a workload has some only if its generation
changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from lamina.objects import names
from lamina.objects.quantities import quantity
from lamina.objects.types import Obj
from lamina.server.kinds.builtin.pod_validation_cache import PodValidationCache, content_of
from lamina.server.kinds.builtin.warn.addresses import address_warnings, block_warnings
from lamina.server.kinds.builtin.warn.pods import LABELS, claim_warnings, pod_warnings, term_warnings

Rule = Callable[[Obj, Obj | None], Iterator[str]]


def warnings(key: str, new: Obj, old: Obj | None) -> list[str]:
    """Return the warnings for an object of a kind; `old` is the object that it replaces."""
    rule = _RULES.get(key)
    if rule is None or (old is not None and _is_untouched(new, old)):
        return []
    return list(rule(new, old))


def _is_untouched(new: Obj, old: Obj) -> bool:
    """Return whether only status was written: then the spec is the same object."""
    return "spec" in new and new["spec"] is old.get("spec")


def _named(obj: Obj, where: str) -> Iterator[str]:
    complaints = names.label(obj["metadata"].get("name", ""))
    if complaints:
        yield (
            f"metadata.name: this is used in {where}, which can result in surprising behavior; "
            f"a DNS label is recommended: [{' '.join(complaints)}]"
        )


def _pod(new: Obj, old: Obj | None) -> Iterator[str]:
    if old is None:
        yield from _named(new, "the Pod's hostname")
        content = content_of(new)
        if content in _PLAIN:
            return
        odd = list(pod_warnings("", new["metadata"], new["spec"]))
        if not odd:
            _PLAIN.add(content)
        yield from odd


_PLAIN: Final = PodValidationCache()


def _template(*path: str, named: bool = True) -> Rule:
    """Return the rule of a kind with a pod template at a path."""

    def rule(new: Obj, old: Obj | None) -> Iterator[str]:
        if old is None and named:
            yield from _named(new, "Pod names and hostnames")
        if old is not None and old["metadata"].get("generation") == new["metadata"].get("generation"):
            return
        template = new
        for name in path:
            template = template.get(name) or {}
        if template:
            yield from pod_warnings(f"{'.'.join(path)}.", template["metadata"], template["spec"])

    return rule


def _stateful_set(new: Obj, old: Obj | None) -> Iterator[str]:
    yield from _template("spec", "template", named=False)(new, old)
    for index, claim in enumerate(new["spec"].get("volumeClaimTemplates") or ()):
        part = "" if old is None else ".Spec"
        yield from claim_warnings(f"spec.volumeClaimTemplates[{index}]{part}", claim["spec"])
    if new["spec"].get("revisionHistoryLimit", 0) < 0:
        yield (
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; "
            "a value >= 0 is recommended"
        )


def _cron_job(new: Obj, old: Obj | None) -> Iterator[str]:
    yield from _template("spec", "jobTemplate", "spec", "template")(new, old)
    if old is not None and "TZ" in new["spec"].get("schedule", ""):
        yield (
            "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see "
            "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
        )


def _service(new: Obj, old: Obj | None) -> Iterator[str]:
    spec, kind = new["spec"], new["spec"].get("type")
    hints = "service.kubernetes.io/topology-aware-hints"
    if hints in (new["metadata"].get("annotations") or {}):
        yield f"annotation {hints} is deprecated, please use service.kubernetes.io/topology-mode instead"
    outside = spec.get("externalIPs") or ()
    addresses = spec.get("clusterIPs") or ()
    if addresses[:1] == ["None"]:
        if spec.get("loadBalancerIP"):
            yield "spec.loadBalancerIP is ignored for headless services"
        if outside:
            yield "spec.externalIPs is ignored for headless services"
        if spec.get("sessionAffinity") != "None":
            yield "spec.SessionAffinity is ignored for headless services"
    else:
        for index, address in enumerate(addresses):
            yield from address_warnings(f"spec.clusterIPs[{index}]", address)
    for index, address in enumerate(outside):
        yield from address_warnings(f"spec.externalIPs[{index}]", address)
    if spec.get("loadBalancerIP"):
        yield from address_warnings("spec.loadBalancerIP", spec["loadBalancerIP"])
    for index, block in enumerate(spec.get("loadBalancerSourceRanges") or ()):
        yield from block_warnings(f"spec.loadBalancerSourceRanges[{index}]", block)
    if kind == "ExternalName" and outside:
        yield 'spec.externalIPs is ignored when spec.type is "ExternalName"'
    if kind != "ExternalName" and spec.get("externalName"):
        yield 'spec.externalName is ignored when spec.type is not "ExternalName"'
    if spec.get("trafficDistribution") == "PreferClose":
        yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'


def _ingress(new: Obj, old: Obj | None) -> Iterator[str]:
    name = "kubernetes.io/ingress.class"
    shown_name = name in (new["metadata"].get("annotations") or {})
    if old is None and shown_name and new["spec"].get("ingressClassName") is None:
        yield f"annotation \"{name}\" is deprecated, please use 'spec.ingressClassName' instead"


def _network_policy(new: Obj, old: Obj | None) -> Iterator[str]:
    for side, peers in (("ingress", "from"), ("egress", "to")):
        for outer, rule in enumerate(new["spec"].get(side) or ()):
            for inner, peer in enumerate(rule.get(peers) or ()):
                block, path = peer.get("ipBlock") or {}, f"spec.{side}[{outer}].{peers}[{inner}].ipBlock"
                if block:
                    yield from block_warnings(f"{path}.cidr", block.get("cidr", ""))
                for index, other in enumerate(block.get("except") or ()):
                    yield from block_warnings(f"{path}.except[{index}]", other)


_BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_USE_CLASS: Final = 'deprecated since v1.8; use "storageClassName" attribute instead'
_OLD_PLUGINS: Final = {
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}


def _volume(new: Obj, old: Obj | None) -> Iterator[str]:
    spec, annotations = new["spec"], new["metadata"].get("annotations") or {}
    options = "volume.beta.kubernetes.io/mount-options"
    if _BETA_CLASS in annotations:
        yield f"metadata.annotations[{_BETA_CLASS}]: {_USE_CLASS}"
    if options in annotations:
        yield f'metadata.annotations[{options}]: deprecated since v1.31; use "mountOptions" attribute instead'
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        yield (
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. "
            "Instead, the recommended approach is to use dynamic provisioning."
        )
    required = (spec.get("nodeAffinity") or {}).get("required") or {}
    for index, term in enumerate(required.get("nodeSelectorTerms") or ()):
        yield from term_warnings(f"spec.nodeAffinity.required.nodeSelectorTerms[{index}]", term)
    for name, sentence in _OLD_PLUGINS.items():
        if name in spec:
            yield f"spec.{'storageOS' if name == 'storageos' else name}: {sentence}"


def _claim(new: Obj, old: Obj | None) -> Iterator[str]:
    if _BETA_CLASS in (new["metadata"].get("annotations") or {}):
        yield f"metadata.annotations[{_BETA_CLASS}]: {_USE_CLASS}"
    yield from claim_warnings("spec", new["spec"])


def _account(new: Obj, old: Obj | None) -> Iterator[str]:
    name = "kubernetes.io/enforce-mountable-secrets"
    before = (old["metadata"].get("annotations") or {}) if old is not None else {}
    if name in (new["metadata"].get("annotations") or {}) and name not in before:
        yield (
            f"metadata.annotations[{name}]: deprecated in v1.32+; "
            "prefer separate namespaces to isolate access to mounted secrets"
        )


def _quota(new: Obj, old: Obj | None) -> Iterator[str]:
    hard = new["spec"].get("hard") or {}
    if old is not None:
        return
    for name in ("cpu", "memory", "ephemeral-storage"):
        asked = f"requests.{name}"
        if asked not in hard and name != "ephemeral-storage":
            asked = name
        limit = f"limits.{name}"
        if asked in hard and limit in hard and quantity(hard[asked]).amount > quantity(hard[limit]).amount:
            yield f"ResourceQuota {asked} ({hard[asked]}) should be less than {limit} ({hard[limit]})"


def _node(new: Obj, old: Obj | None) -> Iterator[str]:
    if new["spec"].get("configSource") is not None:
        yield "spec.configSource: the feature is removed"
    if new["spec"].get("externalID"):
        yield "spec.externalID: this field is deprecated, and is unused by Kubernetes"
    for index, block in enumerate(new["spec"].get("podCIDRs") or ()):
        yield from block_warnings(f"spec.podCIDRs[{index}]", block)


def _endpoints(new: Obj, old: Obj | None) -> Iterator[str]:
    for outer, subset in enumerate(new.get("subsets") or ()):
        for group in ("addresses", "notReadyAddresses"):
            for inner, address in enumerate(subset.get(group) or ()):
                yield from address_warnings(f"subsets[{outer}].{group}[{inner}].ip", address["ip"])


def _slice(new: Obj, old: Obj | None) -> Iterator[str]:
    if old is None and new.get("addressType") == "FQDN":
        yield "spec.addressType: FQDN endpoints are deprecated"
    if new.get("addressType") in ("IPv4", "IPv6"):
        for outer, endpoint in enumerate(new.get("endpoints") or ()):
            for inner, address in enumerate(endpoint.get("addresses") or ()):
                yield from address_warnings(f"endpoints[{outer}].addresses[{inner}]", address)


def _runtime_class(new: Obj, old: Obj | None) -> Iterator[str]:
    for name in (new.get("scheduling") or {}).get("nodeSelector") or {}:
        if name in LABELS:
            yield f"scheduling.nodeSelector: {LABELS[name]}"


def _storage_class(new: Obj, old: Obj | None) -> Iterator[str]:
    for outer, term in enumerate(new.get("allowedTopologies") or ()):
        for inner, expression in enumerate(term.get("matchLabelExpressions") or ()):
            if expression["key"] in LABELS:
                path = f"allowedTopologies[{outer}].matchLabelExpressions[{inner}].key"
                yield f"{path}: {LABELS[expression['key']]}"


def _driver(new: Obj, old: Obj | None) -> Iterator[str]:
    asked = new["spec"].get("tokenRequests")
    changed = old is None or old["spec"].get("tokenRequests") != asked
    if asked and changed and new["spec"].get("serviceAccountTokenInSecrets") is None:
        yield (
            "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, "
            "set to true to prevent possible logging of tokens in volume attributes"
        )


_RULES: Final[Mapping[str, Rule]] = {
    "core/v1.Pod": _pod,
    "core/v1.PodTemplate": _template("template", named=False),
    "core/v1.ReplicationController": _template("spec", "template"),
    "apps/v1.Deployment": _template("spec", "template"),
    "apps/v1.ReplicaSet": _template("spec", "template"),
    "apps/v1.DaemonSet": _template("spec", "template", named=False),
    "apps/v1.StatefulSet": _stateful_set,
    "batch/v1.Job": _template("spec", "template"),
    "batch/v1.CronJob": _cron_job,
    "core/v1.Service": _service,
    "core/v1.ServiceAccount": _account,
    "core/v1.PersistentVolume": _volume,
    "core/v1.PersistentVolumeClaim": _claim,
    "core/v1.ResourceQuota": _quota,
    "core/v1.Node": _node,
    "core/v1.Endpoints": _endpoints,
    "discovery/v1.EndpointSlice": _slice,
    "networking/v1.Ingress": _ingress,
    "networking/v1.NetworkPolicy": _network_policy,
    "node/v1.RuntimeClass": _runtime_class,
    "storage/v1.StorageClass": _storage_class,
    "storage/v1.CSIDriver": _driver,
}
