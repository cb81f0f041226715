"""The owner of a work."""

import pytest

from lamina.families.manifestwork.hub.view import by_owner
from lamina.families.manifestwork.labels import OWNER, OWNER_HASH, OWNER_NOTE

HASH = {OWNER_HASH: "0123456789abcdef0123456789abcdef"}


@pytest.mark.parametrize(
    ("labels", "annotations", "owners"),
    [
        ({OWNER: "team.app"},           {},                       ("team.app",)),
        ({OWNER: "team.app.v2"},        {},                       ("team.app.v2",)),
        ({OWNER: "team.app", **HASH},   {OWNER_NOTE: "x/y"},      ("team.app",)),
        (HASH,                          {OWNER_NOTE: "team/app"}, ("team.app",)),
        (HASH,                          {},                       ()),
        (HASH,                          {OWNER_NOTE: "team"},     ()),
        ({},                            {OWNER_NOTE: "team/app"}, ()),
        ({},                            {},                       ()),
    ],
)  # fmt: skip
def test_a_work_names_its_owner_in_a_label_or_where_the_original_does(
    labels: dict[str, str], annotations: dict[str, str], owners: tuple[str, ...]
) -> None:
    assert tuple(by_owner({"metadata": {"labels": labels, "annotations": annotations}})) == owners
