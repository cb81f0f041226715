"""The count of updated clusters belongs to the revision that the status names, at every moment of a rollout."""

from dataclasses import dataclass, field

from lamina.core.model.plan import Action
from lamina.objects.types import Made
from tests.unit.families.manifestwork.fleet import OK1, OK2, Fleet, progressive


@dataclass
class Recorded(Fleet):
    """A fleet that keeps its state after each write of the hub."""

    states: list[tuple[str, Made]] = field(default_factory=list)
    """Which template the first cluster has, and the status."""

    def perform(self, action: Action, manager: str = "lamina") -> None:
        super().perform(action, manager)
        self.states.append((self.revs().get("c1", ""), self.status()))


def rolled() -> list[tuple[str, Made]]:
    """Return the states that a rollout from one template to another goes through, the last of the first included."""
    fleet = Recorded()
    fleet.start(OK1, 4, progressive(maxConcurrency=1))
    fleet.roll()
    before = fleet.states[-1:]
    fleet.states.clear()
    fleet.want(OK2)
    fleet.roll()
    return [*before, *fleet.states]


def counted(status: Made) -> tuple[int, bool]:
    return status["summary"]["updated"], status["currentRevision"] == status["updateRevision"]


def test_a_status_read_with_or_after_the_works_counts_the_revision_they_hold() -> None:
    states = rolled()
    pairs = [
        (rev, counted(status))
        for place, (rev, _) in enumerate(states)
        for _, status in states[place : place + 3]
    ]
    moved = [found for rev, found in pairs if rev == "2"]

    assert moved
    assert all((count == 4) == is_promoted for count, is_promoted in moved)
    assert [count for count, _ in (counted(status) for rev, status in states if rev == "2")] == sorted(
        count for count, _ in (counted(status) for rev, status in states if rev == "2")
    )


def test_the_count_of_the_revision_before_ends_with_the_write_that_records_the_new_one() -> None:
    states = rolled()
    first_moved = next(place for place, (rev, _) in enumerate(states) if rev == "2")
    recorded = next(
        place
        for place, (_, status) in enumerate(states)
        if status["updateRevision"] != status["currentRevision"]
    )

    assert recorded < first_moved
    assert [counted(status) for _, status in states[:recorded]] == [(4, True)] * recorded
    assert [counted(status) for _, status in states[recorded : first_moved + 1]] == [(0, False)] * (
        first_moved + 1 - recorded
    )


def test_a_status_read_before_the_works_may_be_of_the_revision_before() -> None:
    """Two reads in this order, with the record and the first move between them, show four updated and a moved work."""
    states = rolled()
    status_read_first = states[0][1]
    works_read_then = next(rev for rev, _ in states if rev == "2")

    assert (works_read_then, counted(status_read_first)) == ("2", (4, True))
