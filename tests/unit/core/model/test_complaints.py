"""What is reported of a pass that failed."""

from datetime import UTC, datetime

from lamina.core.model.complaints import failures_about, reported_by, summary, sync_error
from lamina.errors import Forbidden, LaminaError, NotFound, PlanFailed, SpecError
from lamina.objects import meta
from lamina.objects.types import Ref
from tests.unit.core.ownership.worlds import thing, world

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OBJ = {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a", "namespace": "one", "uid": "u"}}
A, B, C = (Ref("v1", "Part", "one", name) for name in "abc")


def failed(*failures: tuple[str, Ref | None]) -> PlanFailed:
    return PlanFailed([SpecError(message) for message, _ in failures], [ref for _, ref in failures])


def test_a_failed_pass_is_a_warning_that_is_counted() -> None:
    emit = sync_error(OBJ, SpecError("spec.size: too large"), by="things", now=NOW)

    assert emit.counts
    assert (emit.event["type"], emit.event["reason"]) == ("Warning", "SyncError")
    assert emit.event["message"] == "Sync error: spec.size: too large"
    assert emit.event["source"] == {"component": "things"}


def test_the_same_failure_has_the_same_event_and_another_has_another() -> None:
    first, again, other = (
        sync_error(OBJ, SpecError(message), by="things", now=NOW).ref for message in ("one", "one", "two")
    )

    assert first == again != other


def test_a_single_error_is_its_own_summary() -> None:
    assert summary(SpecError("spec.size: too large")) == "spec.size: too large"


def test_the_summary_of_many_failures_counts_them_and_names_the_first_three() -> None:
    many = failed(*((f"part {number}", None) for number in range(5)))

    assert summary(many) == "5: part 0; part 1; part 2"


def test_a_refusal_is_named_by_its_verb_and_its_object_unless_it_names_both() -> None:
    def named(message: str, verb: str, about: Ref) -> str:
        return str(PlanFailed([Forbidden(message)], [about], verbs=[verb]))

    denied = 'admission webhook "w" denied the request: no'
    assert named(denied, "create", A) == f"create part one/a: {denied}"
    assert named('parts "a" is immutable', "patch", A) == 'patch part one/a: parts "a" is immutable'
    rbac = 'parts "a" is forbidden: User "u" cannot patch resource "parts"'
    assert named(rbac, "patch", A) == rbac
    assert named(denied, "create", A._replace(cluster="east")) == f"on east: create part one/a: {denied}"
    assert (
        summary(PlanFailed([Forbidden(denied)], [A], verbs=["create"])) == f"1: create part one/a: {denied}"
    )


def test_failures_are_found_by_the_object_they_are_about() -> None:
    error = failed(("no quota", A), ("elsewhere", C), ("unknown", None))

    found = failures_about(error, {A, B})

    assert {ref: str(one) for ref, one in found.items()} == {A: "no quota"}


def test_of_two_failures_of_one_object_the_last_counts() -> None:
    found = failures_about(failed(("first", A), ("second", A)), [A])

    assert [str(one) for one in found.values()] == ["second"]


def test_a_plan_that_failed_elsewhere_has_no_failures_about_an_object() -> None:
    errors: list[LaminaError] = [NotFound("gone")]

    assert failures_about(PlanFailed(errors, [C]), [A, B]) == {}


def test_an_error_is_reported_on_the_object_as_an_event_and_nothing_else() -> None:
    owner = thing("web")
    complain = reported_by("things")

    plan = complain(world(owner), meta.ref(owner), SpecError("spec.size: too large"), NOW)

    assert plan.because == "spec.size: too large"
    assert plan.actions == (sync_error(owner, SpecError("spec.size: too large"), by="things", now=NOW),)


def test_an_error_about_an_object_that_is_gone_is_not_reported() -> None:
    ref = meta.ref(thing("web"))

    assert reported_by("things")(world(), ref, SpecError("too large"), NOW).actions == ()
