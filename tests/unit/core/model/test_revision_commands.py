"""The commands of a family with a command line of its own are values, which a command line prints and writes."""

from lamina.core.model.queries import Answers, Found, Read
from lamina.core.model.revision_commands import (
    AnnotationEdit,
    Queries,
    Result,
    RevisionCommands,
    Table,
    Targets,
    Wait,
)
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import Made, Obj, Ref

APP = Kind("example.com/v1", "App", "apps", namespaced=True)
WEB = APP.ref("default", "web")
ASKED = "example.com/pin"


def app(**annotations: str) -> Made:
    return {
        "apiVersion": "example.com/v1",
        "kind": "App",
        "metadata": {"name": "web", "namespace": "default", "annotations": annotations},
    }


def pin(found: Targets, ref: Ref, number: int | None, answers: Answers) -> AnnotationEdit | Queries:
    """Pin an object that exists: it is read first."""
    asked = Read(ref)
    if asked not in answers:
        return (asked,)

    def result(obj: Obj, wait: Wait) -> Result | None:
        if meta.annotations(obj).get(ASKED) == str(number):
            return Result(lines=(f"pinned to {number}",))
        return Result(error="it is not pinned") if wait is Wait.TIMED_OUT else None

    return AnnotationEdit(ref=ref, annotations={ASKED: str(number)}, result=result)


def nothing(*given: object) -> Queries:
    return ()


def commands() -> RevisionCommands:
    return RevisionCommands(
        name="example",
        targets=lambda kinds, answers: Targets(kinds=kinds, served=kinds, definitions=()),
        revisions=nothing,
        differences=nothing,
        rollback=nothing,
        pin=pin,
        is_definition=lambda obj: False,
        generate={},
    )


def edit() -> AnnotationEdit:
    targets = commands().targets(Kinds([APP]), Answers())
    assert isinstance(targets, Targets)
    assert commands().pin(targets, WEB, 2, Answers()) == (Read(WEB),), "what it depends on is asked first"
    made = commands().pin(targets, WEB, 2, Answers({Read(WEB): Found(app())}))
    assert isinstance(made, AnnotationEdit)
    return made


def test_an_edit_names_the_object_and_the_annotations_and_announces_nothing_by_default() -> None:
    made = edit()

    assert (made.ref, made.annotations, made.announced) == (WEB, {ASKED: "2"}, "")


def test_the_result_of_an_edit_is_open_until_the_object_reports_it_or_the_time_is_up() -> None:
    result = edit().result

    assert result(app(), Wait.JUST_CHANGED) is None
    assert result(app(), Wait.SETTLED) is None
    assert result(app(), Wait.TIMED_OUT) == Result(error="it is not pinned")
    assert result(app(**{ASKED: "2"}), Wait.JUST_CHANGED) == Result(lines=("pinned to 2",))


def test_the_longer_a_result_is_waited_for_the_larger_is_the_wait() -> None:
    assert Wait.JUST_CHANGED < Wait.SETTLED < Wait.TIMED_OUT


def test_a_table_has_a_row_for_each_entry_of_its_data() -> None:
    table = Table(header=("REVISION",), rows=(("1",),), data=({"revision": 1},), empty="no revisions")

    assert len(table.rows) == len(table.data) == 1
    assert all(len(row) == len(table.header) for row in table.rows)
