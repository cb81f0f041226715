"""Works in the name of an account: what is asked before anything is written, and what a no leads to."""

from datetime import timedelta
from typing import Any

from lamina.core.model.queries import DryRun, Found, Refused, Unserved
from lamina.objects.kinds import Kinds
from lamina.objects.types import Made, Obj
from lamina.simulation import SimulatedCluster
from lamina.simulation.cluster.kinds import KINDS, kind
from tests.unit.families.manifestwork.agent.story import CLAIM, RBAC_ROLE, RECORD, Spoke, config_map

EXECUTOR: Made = {
    "subject": {"type": "ServiceAccount", "serviceAccount": {"namespace": "team", "name": "deployer"}}
}


class Judge:
    """Answers access reviews of the account, and records them."""

    def __init__(self, *forbidden: str) -> None:
        self.forbidden = set(forbidden)
        self.asked: list[Obj] = []

    def __call__(self, review: Obj) -> Found:
        spec = review["spec"]
        self.asked.append(spec)
        verb = spec["resourceAttributes"]["verb"]
        return Found({**review, "status": {"allowed": verb not in self.forbidden}})

    @property
    def verbs(self) -> list[str]:
        return [one["resourceAttributes"]["verb"] for one in self.asked]


def judged(*forbidden: str) -> tuple[Spoke, Judge]:
    spoke, judge = Spoke(), Judge(*forbidden)
    spoke.home.review = judge
    return spoke, judge


def test_an_account_is_asked_for_before_anything_is_written() -> None:
    spoke, judge = judged()
    spoke.ask(config_map(), executor=EXECUTOR)

    assert spoke.said("Applied")[0] == "True"
    assert {"create", "update", "patch", "get", "delete"} == set(judge.verbs)
    first = judge.asked[0]
    assert first["user"] == "system:serviceaccount:team:deployer"
    assert first["groups"] == [
        "system:serviceaccounts",
        "system:authenticated",
        "system:serviceaccounts:team",
    ]
    assert first["resourceAttributes"] == {
        "group": "",
        "version": "v1",
        "resource": "configmaps",
        "namespace": "default",
        "name": "cm1",
        "verb": "create",
    }


def test_where_there_is_nothing_to_write_nothing_is_asked() -> None:
    spoke, judge = judged()
    spoke.ask(config_map(), executor=EXECUTOR)
    judge.asked.clear()
    spoke.run()
    assert judge.asked == []


def test_what_is_to_stay_need_not_be_deletable() -> None:
    spoke, judge = judged("delete")
    spoke.ask(config_map(), executor=EXECUTOR, deleteOption={"propagationPolicy": "Orphan"})
    assert spoke.said("Applied")[0] == "True"
    assert "delete" not in judge.verbs


def test_one_that_may_not_is_refused_and_asked_again_after_a_minute() -> None:
    spoke, judge = judged("patch")
    spoke.want(config_map(), executor=EXECUTOR)
    play = spoke.play()
    play.settle()
    assert not spoke.has()
    assert spoke.listed() == []
    assert spoke.condition_of(0, "Applied")["message"] == (
        "Failed to apply manifest: not allowed to apply the resource  configmaps, default cm1, "
        "will try again in 1m0s"
    )
    judge.forbidden.clear()
    play.pass_time(timedelta(seconds=59))
    assert not spoke.has()
    play.pass_time(timedelta(seconds=2))
    assert spoke.has()
    assert spoke.said("Applied")[0] == "True"


def test_an_executor_that_comes_later_is_asked_for_though_nothing_is_to_be_written() -> None:
    spoke, _ = judged("create")
    spoke.ask(config_map())
    assert spoke.said("Applied")[0] == "True"
    spoke.ask(config_map(), executor=EXECUTOR)
    assert spoke.said("Applied") == ("False", "AppliedManifestWorkFailed")


def test_no_executor_grants_rights_it_does_not_have() -> None:
    spoke, _ = judged()
    answer = spoke.home.answer
    users: list[str] = []

    def strict(question: Any) -> Any:
        if isinstance(question, DryRun) and question.creates:
            users.append(question.user)
            return Refused(403, "attempting to grant RBAC permissions not currently held")
        return answer(question)

    spoke.home.answer = strict  # type: ignore[method-assign]
    role = {
        "apiVersion": RBAC_ROLE.api_version,
        "kind": "Role",
        "metadata": {"name": "r", "namespace": "default"},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}],
    }
    spoke.ask(role, config_map(), executor=EXECUTOR)

    assert users and set(users) == {"system:serviceaccount:team:deployer"}
    assert not spoke.has("r", what=RBAC_ROLE)
    assert spoke.has()
    assert "permission escalation" in spoke.condition_of(0, "Applied")["message"]


def test_there_is_no_binding_to_a_role_that_has_yet_to_be_made() -> None:
    """The server cannot check what such a binding grants, and a role created later would grant it unchecked."""
    binding = kind(RBAC_ROLE.api_version, "RoleBinding", "rolebindings")
    spoke = Spoke(home=SimulatedCluster(kinds=Kinds([*KINDS.versions(), RECORD, CLAIM, RBAC_ROLE, binding])))
    spoke.home.review = Judge()
    answer = spoke.home.answer

    def strict(question: Any) -> Any:
        asks = isinstance(question, DryRun) and question.creates and question.obj["kind"] == "RoleBinding"
        return Unserved() if asks and not spoke.has("r", what=RBAC_ROLE) else answer(question)

    spoke.home.answer = strict  # type: ignore[method-assign]
    bound: Made = {
        "apiVersion": binding.api_version,
        "kind": "RoleBinding",
        "metadata": {"name": "b", "namespace": "default"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [],
    }
    spoke.ask(bound, executor=EXECUTOR)

    assert not spoke.has("b", what=binding)
    assert "does not exist" in spoke.condition_of(0, "Applied")["message"]

    role = {
        "apiVersion": RBAC_ROLE.api_version,
        "kind": "Role",
        "metadata": bound["metadata"] | {"name": "r"},
    }
    spoke.ask(bound, role, executor=EXECUTOR)

    assert spoke.has("r", what=RBAC_ROLE)
    assert spoke.has("b", what=binding)
    assert spoke.said("Applied")[0] == "True"


def test_a_role_that_is_there_already_is_no_escalation() -> None:
    spoke, _ = judged()
    role = {
        "apiVersion": RBAC_ROLE.api_version,
        "kind": "Role",
        "metadata": {"name": "r", "namespace": "default"},
    }
    spoke.home.create(role)
    spoke.ask({**role, "rules": []}, executor=EXECUTOR)
    assert spoke.said("Applied")[0] == "True"


def test_only_accounts_can_be_executors() -> None:
    spoke, _ = judged()
    spoke.ask(config_map(), executor={"subject": {"type": "User"}})
    assert "only support ServiceAccount" in spoke.condition_of(0, "Applied")["message"]
    spoke.ask(config_map(), executor={"subject": {"type": "ServiceAccount"}})
    assert "the executor service account is nil" in spoke.condition_of(0, "Applied")["message"]
