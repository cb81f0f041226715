"""Who controls an object that two revisions both want."""

import pytest

from lamina.core.handover import Adoption, Handover, Holder, hand_over

CREATE, KEEP, TAKE, YIELD, COLLIDE = Handover


@pytest.mark.parametrize(
    ("holder", "theirs", "never", "orphans", "anything"),
    [
        (Holder.ABSENT,   0, CREATE,  CREATE,  CREATE),
        (Holder.US,       5, KEEP,    KEEP,    KEEP),
        (Holder.SIBLING,  4, TAKE,    TAKE,    TAKE),
        (Holder.SIBLING,  6, YIELD,   YIELD,   YIELD),
        (Holder.SIBLING,  5, COLLIDE, COLLIDE, COLLIDE),
        (Holder.NOBODY,   0, COLLIDE, TAKE,    TAKE),
        (Holder.STRANGER, 0, COLLIDE, COLLIDE, TAKE),
    ],
)  # fmt: skip
def test_revision_five_wants_the_object(
    holder: Holder, theirs: int, never: Handover, orphans: Handover, anything: Handover
) -> None:
    assert hand_over(holder, theirs=theirs, ours=5, adoption=Adoption.NEVER) is never
    assert hand_over(holder, theirs=theirs, ours=5, adoption=Adoption.ORPHANS) is orphans
    assert hand_over(holder, theirs=theirs, ours=5, adoption=Adoption.ANYTHING) is anything
