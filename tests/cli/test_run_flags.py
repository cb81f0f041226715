"""The options of a process that runs families."""

from datetime import timedelta
from typing import Any

import click
import pytest
from click.testing import CliRunner

from lamina.cli.commands.run import run
from lamina.cli.options import run_flags
from lamina.cli.options.conflicts import check_conflicts
from lamina.cli.options.webhook_flags import check_options
from lamina.errors import SettingsError
from lamina.families.registry import chosen


def flags(*arguments: str) -> run_flags.Flags:
    """Return what `lamina run` makes of its arguments."""
    context = run.make_context("run", list(arguments))
    return dict(context.params)


@pytest.mark.parametrize(
    ("arguments", "level", "form"),
    [
        ([],                                    "info",    "text"),
        (["--log", "error"],                    "error",   "text"),
        (["--zap-devel"],                       "debug",   "text"),
        (["--zap-log-level", "5"],              "debug",   "text"),
        (["--zap-log-level", "error"],          "error",   "text"),
        (["--zap-log-level", "panic"],          "error",   "text"),
        (["--zap-encoder", "json"],             "info",    "json"),
        (["--zap-encoder=console"],             "info",    "text"),
        (["--log-format=json"],                 "info",    "json"),
    ],
)  # fmt: skip
def test_the_log_is_as_either_name_says(arguments: list[str], level: str, form: str) -> None:
    made = flags(*arguments)

    assert (run_flags.log_level(made), run_flags.log_format(made)) == (level, form)


def test_a_level_that_there_is_not_is_refused() -> None:
    with pytest.raises(click.BadParameter, match='got "loud"'):
        run_flags.log_level(flags("--zap-log-level", "loud"))


@pytest.mark.parametrize(
    ("argument", "leads", "debugs"),
    [
        ("--leader-election",       True,  False),
        ("--leader-election=true",  True,  False),
        ("--leader-election=false", False, False),
        ("--leader-election=0",     False, False),
        ("--no-leader-election",    False, False),
        ("--zap-devel=true",        True,  True),
        ("--zap-devel=False",       True,  False),
    ],
)  # fmt: skip
def test_a_switch_may_have_a_value_as_manifests_of_the_original_give_it(
    argument: str, leads: bool, debugs: bool
) -> None:
    made = flags(argument, "--metrics-address=:9999")

    assert (made["leader_election"], made["zap_devel"]) == (leads, debugs)
    assert made["metrics_address"] == ":9999"


def test_a_switch_that_is_neither_on_nor_off_is_refused() -> None:
    with pytest.raises(click.BadParameter, match='expected true or false, got "perhaps"'):
        flags("--leader-election=perhaps")


def test_a_selector_without_a_meaning_is_said_with_its_option() -> None:
    with pytest.raises(click.BadParameter, match="found '=='") as refused:
        run_flags.family_settings(flags("--target-label-selector", "=="))

    assert refused.value.param_hint == "--target-label-selector"


@pytest.mark.parametrize("option", ["--metrics-address", "--health-probe-bind-address", "--pprof-address"])
def test_an_address_that_is_none_is_said_with_its_option(option: str) -> None:
    with pytest.raises(click.BadParameter, match="expected an address like HOST:PORT") as refused:
        flags(option, "nope")

    assert refused.value.param is not None and option in refused.value.param.opts
    assert flags(option, ":9999") and flags(option, "0")


def test_leases_are_kept_as_either_name_says() -> None:
    usual = run_flags.lease_config(flags(), "here")
    assert (usual.namespace, usual.name, usual.shards) == ("here", "lamina", 1)
    assert (usual.lease_duration, usual.renew_deadline, usual.retry_period) == (15.0, 10.0, 2.0)

    theirs = run_flags.lease_config(
        flags("--leader-election-id", "mc", "--leader-election-namespace", "there"), "here"
    )
    assert (theirs.namespace, theirs.name) == ("there", "mc")

    short = run_flags.lease_config(
        flags("--lease-duration", "4s", "--renew-deadline=1500ms", "--retry-period=1s", "--shards", "3"),
        "here",
    )
    assert (short.lease_duration, short.renew_deadline, short.shards) == (4.0, 1.5, 3)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--lease-duration=5s"], "less than the 5s of --lease-duration, got 10s"),
        (["--renew-deadline=15s"], "less than the 15s of --lease-duration, got 15s"),
        (["--renew-deadline=2s"], "less than the 2s of --renew-deadline, got 2s"),
    ],
)
def test_a_replica_that_would_go_on_as_long_as_its_lease_lasts_is_refused(
    arguments: list[str], complaint: str
) -> None:
    with pytest.raises(click.BadParameter, match=complaint):
        run_flags.lease_config(flags(*arguments), "here")


def test_families_run_as_they_are_told_to() -> None:
    made = run_flags.family_settings(
        flags("--workers=9", "--cache-flush-interval", "1h", "--apply-strategy", "server-side-apply")
    )

    assert (made.workers, made.flush, made.applies_as) == (9, timedelta(hours=1), "metacontroller")


def test_requests_are_not_limited_by_default() -> None:
    assert run_flags.request_limit(flags()) is None
    limited = run_flags.request_limit(flags("--client-go-qps", "20", "--client-go-burst", "2"))
    assert limited is not None
    assert [round(limited.reserve(), 2) for _ in range(3)] == [0, 0, 0.05]


def test_events_about_one_object_are_limited_by_default() -> None:
    usual = run_flags.event_limit(flags())
    assert usual is not None
    assert sum(usual.take("one") for _ in range(100)) == 25
    assert run_flags.event_limit(flags("--events-qps", "0")) is None


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--discovery-interval", "soon"], "expected a duration"),
        (["--lease-duration", "0s"], "expected a duration above 0"),
        (["--apply-strategy", "none"], "is not one of"),
        (["--leader-election-resource-lock", "configmaps"], "is not"),
        (["--log", "loud"], "is not one of"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: list[str], complaint: str) -> None:
    said: Any = CliRunner().invoke(run, arguments)

    assert said.exit_code == 2
    assert complaint in said.output


def test_what_is_left_out_is_said_as_elsewhere() -> None:
    gates = "ManifestWorkReplicaSet=false, CleanUpCompletedManifestWork=True"
    made = run_flags.family_settings(flags("--feature-gates", gates))
    assert (made.replica_sets, made.cleans_up) == (False, True)
    names = [one.name for one in chosen("manifestwork", made)[0].controllers]
    assert "manifestworkreplicaset" not in names
    assert "finished-works" in names

    with pytest.raises(SettingsError, match='got "Other=true"'):
        run_flags.family_settings(flags("--feature-gates", "Other=true"))


def test_resource_graphs_run_with_the_options_that_their_controller_has_upstream() -> None:
    made = run_flags.family_settings(
        flags(
            *("--feature-gates", "CELOmitFunction=true"),
            *("--input-revision-storage", "Inline", "--default-history-limit", "3"),
            *("--propagation-requeue-interval", "5s", "--allow-crd-deletion"),
        )
    )

    assert (made.omits, made.inline_inputs, made.history_limit, made.deletes_crds) == (True, True, 3, True)
    assert made.propagation_interval == timedelta(seconds=5)
    assert not run_flags.family_settings(flags()).omits


NO_ELECTION, NO_ORIGINAL = "--no-leader-election", "--no-upstream-lease"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([NO_ELECTION, "--shards=2"],                         "--shards has no effect with --no-leader-election"),
        ([NO_ELECTION, NO_ORIGINAL, "--leader-election-id=mc"], "--lease-name has no effect with --no-leader-election"),
        ([NO_ELECTION, NO_ORIGINAL, "--lease-namespace=ops"], "and without a webhook"),
        ([NO_ELECTION, "--no-upstream-lease", "--retry-period=1s"], "--retry-period has no effect with --no-leader-el"),
        (["--phase-class=a", "--no-upstream-lease"],          "--no-upstream-lease has no effect with --phase-class"),
        (["--client-go-burst=9"],                             "--client-go-burst has no effect without --client-go-qps"),
        (["--events-qps=0", "--events-burst=9"],              "--events-burst has no effect with --events-qps 0"),
        (["--apply-strategy-ssa-field-manager=me"],           "has no effect with --apply-strategy dynamic-apply"),
        (["--families=objectset", "--no-scheduler"],          "--no-scheduler has no effect because the family manif"),
        (["--families=objectset", "--target-label-selector=a=b"], "because the family metacontroller does not run"),
        (["--families=objectset", "--allow-crd-deletion"],    "because the family resourcegraph does not run"),
        (["--log=info", "--zap-devel"],                       "--log has no effect with --zap-devel"),
        (["--log-format=text", "--zap-encoder=json"],         "--log-format has no effect with --zap-encoder"),
    ],
)  # fmt: skip
def test_a_setting_that_another_one_cancels_is_refused(arguments: list[str], complaint: str) -> None:
    with pytest.raises(SettingsError) as refused:
        check(*arguments)

    assert complaint in str(refused.value)
    assert refused.value.hint


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        [NO_ELECTION, "--lease-duration=20s"],
        [NO_ELECTION, "--lease-namespace=ops", "--webhook-service=ops/lamina"],
        ["--client-go-burst=9", "--client-go-qps=3"],
        ["--apply-strategy=server-side-apply", "--apply-strategy-ssa-field-manager=me"],
        ["--families=manifestwork", "--no-scheduler"],
        ["--leader-election", "--shards=2", "--leader-election-id=mc"],
        ["--zap-devel", "--zap-log-level=2"],
    ],
)
def test_settings_that_go_together_are_not_refused(arguments: list[str]) -> None:
    check(*arguments)


def check(*arguments: str) -> None:
    """Check the options as `lamina run` does."""
    context = run.make_context("run", list(arguments))
    check_conflicts(context, chosen(context.params["families"]))


def test_a_webhook_has_a_url_or_a_service() -> None:
    both = flags("--webhook-url=https://10.0.0.7", "--webhook-service=ops/lamina")

    with pytest.raises(SettingsError, match="a webhook has a URL or a service, not both"):
        check_options(both, chosen("manifestwork"))


def test_the_command_refuses_it_before_it_looks_for_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/none")

    done: Any = CliRunner().invoke(run, [NO_ELECTION, "--shards=2"])

    assert isinstance(done.exception, SettingsError)
    assert "--shards has no effect" in str(done.exception)
