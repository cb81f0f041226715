"""The controllers of an agent, as values; the cluster they run on is the primary one, and `HUB` is bound by the runner."""

from __future__ import annotations

from functools import partial

from lamina.core.model.agents import AgentOptions
from lamina.core.model.controller import AnyController, Controller, itself
from lamina.families.manifestwork.agent import applied_work_gc
from lamina.families.manifestwork.agent.labels import AGENT, Agent
from lamina.families.manifestwork.agent.plan import complain, plan, queries
from lamina.families.manifestwork.agent.registration import registration
from lamina.families.manifestwork.agent.view import View, gather, work_of_record
from lamina.families.manifestwork.agent.watches import itself_and_rivals, watch_records, watch_works

_DEFAULTS = AgentOptions()


def agent(
    cluster: str, hub: str, id: str = "", *, options: AgentOptions = _DEFAULTS, version: str = ""
) -> tuple[AnyController, ...]:
    """
    Return the controllers of an agent.

    `cluster` is the name of its cluster on the hub, `hub` the hash of the address of the
    hub (`hub_hash`), `id` distinguishes it from other agents on the cluster, and `version`
    is the one that the server of the cluster reports.
    """
    identity = Agent(cluster=cluster, hub=hub, id=id or hub, options=options)
    return works(identity), records(identity), registration(identity, version)


def works(agent: Agent) -> Controller[View]:
    """Return the controller that applies works."""
    return Controller(
        name="work-agent",
        watches=(
            watch_works(agent, partial(itself_and_rivals, agent)),
            watch_records(partial(work_of_record, agent)),
        ),
        gather=partial(gather, agent),
        queries=queries,
        plan=plan,
        complain=partial(complain, agent),
        manager=AGENT,
        at_once=agent.options.workers,
        resync_on_discovery=True,
    )


def records(agent: Agent) -> Controller[applied_work_gc.View]:
    """Return the controller that removes the objects of deleted records, and evicts records without a work."""
    return Controller(
        name="applied-work-agent",
        watches=(watch_records(itself), watch_works(agent, partial(applied_work_gc.records_of_work, agent))),
        gather=partial(applied_work_gc.gather, agent),
        queries=applied_work_gc.queries,
        plan=applied_work_gc.plan,
        manager=AGENT,
        at_once=agent.options.workers,
    )
