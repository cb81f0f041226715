"""A simulated set of pods that a hook rolls out: the smallest thing that shows what a rollout does."""

import json
from dataclasses import dataclass, field
from typing import Any

from lamina.core.model.controller import Controller
from lamina.core.model.memo import MemoStore
from lamina.core.model.plan import Apply, Create, Delete, Patch
from lamina.core.model.queries import Answer, Call, HookResponse
from lamina.errors import AlreadyExists, Conflict, HookError, NotFound
from lamina.families.metacontroller.compile import composite
from lamina.families.metacontroller.controller import controller
from lamina.families.metacontroller.labels import API_VERSION
from lamina.families.metacontroller.sync.view import View
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import Made, Ref
from lamina.simulation import Crashed, SimulatedCluster, planned, settle
from lamina.simulation.cluster.kinds import ALL_VERBS, EVENT, NAMESPACE, POD

CATSET = Kind("ex.example.com/v1", "CatSet", "catsets", True, ALL_VERBS, frozenset({"status"}))
BOX = Kind("ex.example.com/v1", "Box", "boxes", True, ALL_VERBS, frozenset({"status"}))
"""What a cat sits in, where there are boxes."""
COMPOSITE = Kind(
    API_VERSION, "CompositeController", "compositecontrollers", False, ALL_VERBS, frozenset({"status"})
)
REVISION = Kind(API_VERSION, "ControllerRevision", "controllerrevisions", True, ALL_VERBS)
PARENT = Ref("ex.example.com/v1", "CatSet", "default", "nginx")


@dataclass
class Cats(SimulatedCluster):
    """A cluster with a CatSet on it, and a hook that wants as many pods as it says, of the image it says."""

    kinds: Kinds = Kinds((CATSET, BOX, COMPOSITE, REVISION, POD, EVENT, NAMESPACE))
    order: tuple[int, ...] = ()
    asked: int = 0
    busy: set[str] = field(default_factory=set)
    """Images for which the hook fails."""
    boxes: bool = False
    """Whether each pod has a box of its image."""
    says: bool = True
    """Whether the hook says anything of a status."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.call = self._called

    def _called(self, call: Call) -> Answer:
        self.asked += 1
        return HookResponse(json.dumps(self.hook(json.loads(call.body))).encode())

    def hook(self, said: Made) -> Made:
        spec = said["parent"]["spec"]
        if said["finalizing"]:
            # One goes after the other, and the parent after the last.
            left = sorted(said["children"]["Pod.v1"])[:-1]
            image = spec["template"]["image"]
            pods = [self.pod(int(name.removeprefix("nginx-")), image) for name in left]
            return {"children": pods, "finalized": not said["children"]["Pod.v1"]}
        if spec["template"]["image"] in self.busy:
            raise HookError("the hook has a headache")
        pods = [self.pod(number, spec["template"]["image"]) for number in self.places(spec["replicas"])]
        if self.boxes:
            pods = [one for pod in pods for one in (pod, self.box(pod))]
        return {"children": pods, "status": {"seen": len(said["children"]["Pod.v1"])} if self.says else None}

    def places(self, replicas: int) -> list[int]:
        return [number for number in (self.order or range(10)) if number < replicas]

    def pod(self, number: int, image: str) -> Made:
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"nginx-{number}", "labels": {"app": "nginx"}},
            "spec": {"image": image},
        }

    def box(self, pod: Made) -> Made:
        name = pod["metadata"]["name"].replace("nginx", "box")
        metadata = {**pod["metadata"], "name": name}
        return {"apiVersion": BOX.api_version, "kind": BOX.kind, "metadata": metadata, "spec": pod["spec"]}

    # ── edits ──

    def start(self, replicas: int = 3, image: str = "one") -> None:
        spec = {
            "selector": {"matchLabels": {"app": "nginx"}},
            "replicas": replicas,
            "template": {"image": image},
        }
        self.create({"apiVersion": "ex.example.com/v1", "kind": "CatSet", "metadata": {"name": "nginx", "namespace": "default"}, "spec": spec})  # fmt: skip

    def want(self, **spec: Any) -> None:
        self.patch(PARENT, {"spec": spec})

    def pods(self) -> dict[str, str]:
        return {meta.name(pod): pod["spec"]["image"] for pod in sorted(self.listed(POD), key=meta.name)}

    def ready(self, *names: str, status: str = "True") -> None:
        """Have pods become ready, or all of them."""
        for pod in self.listed(POD):
            if not names or meta.name(pod) in names:
                self.patch(meta.ref(pod), {"status": {"conditions": [{"type": "Ready", "status": status}]}})

    def revisions(self) -> list[Made]:
        return self.listed(REVISION)

    def condition(self) -> Made:
        (found,) = self.get(PARENT)["status"]["conditions"]
        assert isinstance(found, dict)
        return found

    # ── what Metacontroller does about it ──

    def controller(
        self,
        method: str = "RollingRecreate",
        *,
        applies: bool = False,
        memos: MemoStore | None = None,
        **said: Any,
    ) -> Controller[View]:
        setup = composite(
            self.composite(method, **said), self.kinds, applies_as="metacontroller" if applies else ""
        )
        return controller(setup, memos=memos)

    def composite(
        self, method: str = "RollingRecreate", *, finalizes: bool = False, kept: int = 0, **rolling: Any
    ) -> Made:
        """Return the CompositeController that says how cats are rolled."""
        strategy = {
            "method": method,
            "statusChecks": {"conditions": [{"type": "Ready", "status": "True"}]},
            **({"rollingUpdate": rolling} if rolling else {}),
        }
        history = {"fieldPaths": ["spec.template"], "limit": kept}
        rolled = [POD, BOX] if self.boxes else [POD]
        return {
            "apiVersion": API_VERSION,
            "kind": "CompositeController",
            "metadata": {"name": "catset", "uid": "cc"},
            "spec": {
                "parentResource": {
                    "apiVersion": "ex.example.com/v1",
                    "resource": "catsets",
                    "revisionHistory": history,
                },
                "childResources": [
                    {"apiVersion": one.api_version, "resource": one.plural, "updateStrategy": strategy}
                    for one in rolled
                ],
                "hooks": {
                    name: {"webhook": {"url": f"http://hook/{name}"}}
                    for name in ("sync", *(("finalize",) if finalizes else ()))
                },
            },
        }

    def settle(self, crash_after: int | None = None, **settings: Any) -> None:
        """Let it work until there is nothing to do but wait."""
        settle(self, self.controller(**settings), crash_after=crash_after)

    def roll(self, *, crash_after: int | None = None, most: int = 50, **settings: Any) -> int:
        """Let it work, pods becoming ready in between, until nothing changes; return after how many rounds."""
        for number in range(most):
            before = self.version
            try:
                self.settle(crash_after, **settings)
            except Crashed:
                # It starts again, with nothing remembered, and does not die a second time.
                crash_after = None
                continue
            self.ready()
            if self.version == before:
                return number
        raise AssertionError(f"the roll never ends: {self.pods()}, {self.condition()}")


def touched(cats: SimulatedCluster) -> list[tuple[str, str]]:
    """Return what was done to pods, in order: deletions, and what each was made with."""
    told = []
    for action in cats.journal:
        if isinstance(action, Delete) and action.ref.kind == "Pod":
            told.append((action.ref.name, "deleted"))
        elif (isinstance(action, Create) and action.ref.kind == "Pod") or (
            isinstance(action, Apply) and action.ref.kind == "Pod"
        ):
            told.append((action.ref.name, action.obj["spec"]["image"]))
        elif isinstance(action, Patch) and action.ref.kind == "Pod" and "spec" in action.patch:
            told.append((action.ref.name, action.patch["spec"]["image"]))
    return told


__all__ = ["PARENT", "POD", "AlreadyExists", "Cats", "Conflict", "NotFound", "planned", "touched"]
