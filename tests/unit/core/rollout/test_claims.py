"""Which target is on which revision."""

from lamina.core.rollout.claims import Claims, resolve


def test_of_two_that_claim_one_target_the_first_has_it() -> None:
    claims = resolve([("new", ["a"]), ("old", ["a", "b"])])

    assert claims.holder("a") == "new"
    assert claims.on("old") == ("b",)
    assert claims.holder("c") is None


def test_a_target_that_moves_is_on_no_other_revision() -> None:
    claims = resolve([("new", ["a"]), ("old", ["b", "c"])])

    moved = claims.moved(["b"], "new")

    assert moved.on("new") == ("a", "b")
    assert moved.on("old") == ("c",)
    assert claims.on("old") == ("b", "c"), "what was claimed before is another value"
    assert moved.without({"a", "c"}) == Claims({"b": "new"})
