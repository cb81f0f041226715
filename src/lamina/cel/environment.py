"""
The three environments.

`PLAIN` is the specification with its extensions. `KUBERNETES` is that of CRD rules
and admission policies in Kubernetes 1.35, without the authorizer. `GRAPH` is that of
resource graphs.
"""

from __future__ import annotations

from typing import Final

from lamina.cel.declarations import Environment, Flags, Limits
from lamina.cel.library.addresses import CIDR, IP
from lamina.cel.library.aggregates import AGGREGATES
from lamina.cel.library.bindings import BINDINGS
from lamina.cel.library.block import BLOCK
from lamina.cel.library.comprehensions import COMPREHENSIONS
from lamina.cel.library.encoders import ENCODERS
from lamina.cel.library.formats import FORMATS
from lamina.cel.library.kro import GRAPH_FUNCTIONS
from lamina.cel.library.lists import LISTS
from lamina.cel.library.math import MATH
from lamina.cel.library.optionals import OPTIONALS
from lamina.cel.library.quantity import QUANTITY
from lamina.cel.library.regex import KUBERNETES_REGEX, REGEX
from lamina.cel.library.semver import SEMVER
from lamina.cel.library.sets import SETS
from lamina.cel.library.standard import STANDARD
from lamina.cel.library.strings import STRINGS, STRINGS_2, STRINGS_3
from lamina.cel.library.urls import URLS
from lamina.cel.macros import EXISTS_ONE_CAMEL

_BUDGET: Final = Limits(cost=1_000_000)
"""Kubernetes' cost limit of one evaluation."""

PLAIN: Final = Environment(name="plain", flags=Flags(strict_values=True)).extend(
    libraries=(
        STANDARD, OPTIONALS, STRINGS, MATH, LISTS, SETS, ENCODERS, BINDINGS, BLOCK, COMPREHENSIONS, REGEX,
    ),
    macros=(EXISTS_ONE_CAMEL,),
)  # fmt: skip
"""The specification with all its extensions."""

KUBERNETES: Final = Environment(
    name="kubernetes",
    flags=Flags(
        homogeneous_literals=True, backtick_fields=False, validate_literals=True, kubernetes_costs=True
    ),
    limits=_BUDGET,
).extend(
    libraries=(
        STANDARD, URLS, KUBERNETES_REGEX, AGGREGATES, OPTIONALS, QUANTITY, STRINGS_2, SETS, IP, CIDR, FORMATS,
        COMPREHENSIONS, SEMVER, LISTS,
    ),
)  # fmt: skip
"""The environment of CRD rules and admission policies; callers add their variables."""

GRAPH: Final = Environment(name="graph", flags=Flags(kubernetes_costs=True), limits=_BUDGET).extend(
    libraries=(
        STANDARD, URLS, KUBERNETES_REGEX, AGGREGATES, OPTIONALS, QUANTITY, STRINGS_3, IP, CIDR, COMPREHENSIONS,
        SEMVER, LISTS, ENCODERS, BINDINGS, GRAPH_FUNCTIONS,
    ),
)  # fmt: skip
"""The environment of resource graphs; callers add the functions that need an instance."""

ENVIRONMENTS: Final = {environment.name: environment for environment in (PLAIN, KUBERNETES, GRAPH)}
"""The three by name."""
