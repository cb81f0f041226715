"""How long a key waits whose writes conflict."""

from datetime import timedelta

from lamina.core.model.conflict_backoff import ConflictBackoff
from lamina.errors import Conflict, Forbidden, PlanFailed
from lamina.objects.types import Ref

KEY = Ref("v1", "ConfigMap", "default", "a")
CONFLICT = PlanFailed([Conflict("changed")])


def test_the_delay_of_conflicts_stays_short_for_a_while_and_grows_to_five_minutes() -> None:
    backoff = ConflictBackoff()
    delays = []
    for number in range(1, 61):
        assert backoff.count(KEY, CONFLICT) == number
        delays.append(backoff.max_delay(KEY))

    second = timedelta(seconds=1)
    assert delays[:20] == [second] * 20
    assert delays[20:24] == [2 * second, 4 * second, 8 * second, 16 * second]
    assert delays[-1] == timedelta(minutes=5)


def test_a_success_or_another_error_ends_the_row() -> None:
    for after in (None, PlanFailed([Conflict("changed"), Forbidden("no")]), Conflict("changed")):
        backoff = ConflictBackoff()
        backoff.count(KEY, CONFLICT)

        assert backoff.count(KEY, after) == 0
        assert backoff.max_delay(KEY) is None and not backoff.keys


def test_a_key_that_is_forgotten_starts_anew() -> None:
    backoff = ConflictBackoff()
    backoff.count(KEY, CONFLICT)
    backoff.forget(KEY)

    assert backoff.count(KEY, CONFLICT) == 1
