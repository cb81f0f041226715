"""The agent of a cluster, as values: whoever runs it says which cluster is at home, and which is the hub."""

from __future__ import annotations

from functools import partial

from lamina.core.controller import AnyController, Controller, Watch, itself, only
from lamina.families.manifestwork.names import APPLIED_WORK, WORK, WORK_VERSION
from lamina.families.manifestwork.spoke import closing
from lamina.families.manifestwork.spoke.names import AGENT, DEFAULTS, HUB, Agent, Options
from lamina.families.manifestwork.spoke.plan import complain, plan, questions
from lamina.families.manifestwork.spoke.registration import registration
from lamina.families.manifestwork.spoke.view import View, gather, of_its_work, with_kinds


def agent(
    cluster: str, hub: str, id: str = "", *, options: Options = DEFAULTS, version: str = ""
) -> tuple[AnyController, ...]:
    """
    Return the controllers that make a cluster one of a hub's.

    They are at home on the cluster, and name the other one `HUB`. `cluster` is what the
    hub calls this one, `hub` what tells the hub from others (`hub_hash` of its address),
    `id` which of the agents here this is, and `version` the one that the cluster's server has.
    """
    who = Agent(cluster=cluster, hub=hub, id=id or hub, options=options)
    return works(who), records(who), registration(who, version)


def works(who: Agent) -> Controller[View]:
    """Return the controller that applies works."""
    return Controller(
        name="work-agent",
        watches=(
            Watch(
                selects=only(*WORK),
                api_version=WORK_VERSION,
                cluster=HUB,
                namespace=who.cluster,
                keep=with_kinds,
                concerns=itself,
            ),
            Watch(selects=only(*APPLIED_WORK), api_version=WORK_VERSION, concerns=partial(of_its_work, who)),
        ),
        gather=partial(gather, who),
        questions=questions,
        plan=plan,
        complain=partial(complain, who),
        manager=AGENT,
        at_once=who.options.workers,
        minds_kinds=True,
    )


def records(who: Agent) -> Controller[closing.View]:
    """Return the controller that empties and evicts the records of works."""
    return Controller(
        name="applied-work-agent",
        watches=(
            Watch(selects=only(*APPLIED_WORK), api_version=WORK_VERSION, concerns=itself),
            Watch(
                selects=only(*WORK),
                api_version=WORK_VERSION,
                cluster=HUB,
                namespace=who.cluster,
                keep=with_kinds,
                concerns=partial(closing.of_its_record, who),
            ),
        ),
        gather=partial(closing.gather, who),
        questions=closing.questions,
        plan=closing.plan,
        manager=AGENT,
        at_once=who.options.workers,
    )
