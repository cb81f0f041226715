"""Strategies for expressions."""

from __future__ import annotations

import string

from hypothesis import strategies as st

from lamina.cel.operands import RESERVED

names = st.text(string.ascii_letters + "_", min_size=1, max_size=4).filter(
    lambda name: name not in RESERVED and name not in ("has", "cel")
)
literals = st.one_of(
    st.integers(-(2**63), 2**63 - 1).map(str),
    st.integers(0, 2**64 - 1).map(lambda n: f"{n}u"),
    st.floats(allow_nan=False, allow_infinity=False)
    .map(repr)
    .filter(lambda text: "e" in text or "." in text),
    st.sampled_from(["true", "false", "null", "''", '"a\\n\\x41"', "b'\\xff'", "r'\\d'", "'''a'b'''"]),
)


def _compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from(["+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=", "in", "&&", "||"])
    several = st.lists(inner, max_size=3)
    return st.one_of(
        st.builds("({}) {} ({})".format, inner, operators, inner),
        st.builds("({}) ? ({}) : ({})".format, inner, inner, inner),
        st.builds("!({})".format, inner),
        st.builds("-({})".format, inner),
        st.builds("({}).{}".format, inner, names),
        st.builds("({}).?{}".format, inner, names),
        st.builds("({})[{}]".format, inner, inner),
        st.builds("({})[?{}]".format, inner, inner),
        st.builds("has(({}).{})".format, inner, names),
        st.builds("({}).all(v, {})".format, inner, inner),
        st.builds("({}).map(v, {}, {})".format, inner, inner, inner),
        st.builds("({}).transformMap(k, v, {})".format, inner, inner),
        st.builds("cel.bind(v, {}, {})".format, inner, inner),
        st.builds("({}).optMap(v, {})".format, inner, inner),
        st.builds(lambda name, args: f"{name}({', '.join(args)})", names, several),
        st.builds(lambda t, name, args: f"({t}).{name}({', '.join(args)})", inner, names, several),
        st.builds(lambda items: f"[{', '.join(items)}]", several),
        st.builds(lambda items: f"[{', '.join('?' + item for item in items)}]", several),
        st.builds(lambda items: f"{{{', '.join(f'{item}: {item}' for item in items)}}}", several),
        st.builds(
            lambda name, items: f"{name}{{{', '.join(f'f: {item}' for item in items)}}}", names, several
        ),
    )


expressions = st.recursive(st.one_of(names, names.map(".{}".format), literals), _compound, max_leaves=12)
"""Texts with valid syntax."""
