"""Names of kinds, ids and iterators."""

import re

import pytest

from lamina.graph.graph import GraphError
from lamina.graph.naming import RESERVED
from tests.unit.graph.graphs import compiled, config


@pytest.mark.check("RG-28")
@pytest.mark.parametrize(
    ("id_", "said"),
    [
        ("my-id",  "id my-id is not a valid KRO resource id: must be lower camelCase"),
        ("my_id",  "is not a valid KRO resource id"),
        ("My",     "is not a valid KRO resource id"),
        ("9a",     "is not a valid KRO resource id"),
        ("",       "is not a valid KRO resource id"),
        ("a\n",    "is not a valid KRO resource id"),
        ("schema", "id schema is a reserved keyword in KRO"),
        ("each",   "id each is a reserved keyword in KRO"),
        ("while",  "id while is a reserved keyword in KRO"),
        ("true",   "id true is a reserved keyword in KRO"),
    ],
)  # fmt: skip
def test_an_id_is_an_identifier_and_no_reserved_word(id_: str, said: str) -> None:
    with pytest.raises(GraphError, match=re.escape(said)) as raised:
        compiled(config("ok"), config(id_))
    assert str(raised.value).startswith("spec.resources[1].id: naming convention violation: ")


@pytest.mark.check("RG-28")
def test_an_id_is_there_once() -> None:
    with pytest.raises(GraphError, match="naming convention violation: found duplicate resource IDs a"):
        compiled(config("a"), config("b"), config("a"))


def test_all_reserved_words_are_refused() -> None:
    assert len(RESERVED) == 32 + 21
    for word in sorted(RESERVED):
        with pytest.raises(GraphError, match=f"id {word} is a reserved keyword in KRO"):
            compiled(config(word))


def test_the_variables_of_the_gate_of_a_definition_are_ids_all_the_same() -> None:
    assert compiled(config("rgd"), config("instances")).order == ("rgd", "instances")


@pytest.mark.parametrize("kind", ["app", "A_b", "9A", "", "A-b"])
def test_a_kind_is_upper_camel_case(kind: str) -> None:
    with pytest.raises(GraphError, match=f"kind '{kind}' is not a valid KRO kind name") as raised:
        compiled(kind=kind)
    assert str(raised.value).startswith("spec.schema.kind: naming convention violation: ")


NAMES = {"names": "[]string", "zones": "[]string"}


@pytest.mark.parametrize(
    ("loops", "said"),
    [
        ([{"my-name": "${schema.spec.names}"}], 'forEach iterator name "my-name" is not valid: must be lowerCamelCase'),
        ([{"each": "${schema.spec.names}"}], 'forEach iterator name "each" is a reserved keyword'),
        ([{"other": "${schema.spec.names}"}], 'forEach iterator name "other" conflicts with resource ID'),
        ([{"a": "${schema.spec.names}"}, {"a": "${schema.spec.zones}"}], "duplicate forEach iterator name"),
        ([{"a": "${schema.spec.names}", "b": "${schema.spec.zones}"}], "forEach has one iterator in each entry, got 2"),
        ([{}], "forEach has one iterator in each entry, got 0"),
    ],
)  # fmt: skip
def test_an_iterator_is_an_identifier_of_its_own(loops: list[dict[str, str]], said: str) -> None:
    with pytest.raises(GraphError, match=re.escape(said)):
        compiled(config("many", "${a}", forEach=loops), config("other"), spec=NAMES)


def test_a_collection_has_at_most_ten_dimensions() -> None:
    loops = [{f"i{number}": "${schema.spec.names}"} for number in range(11)]
    name = "-".join(f"${{i{number}}}" for number in range(11))
    with pytest.raises(GraphError, match="forEach cannot have more than 10 dimensions, got 11"):
        compiled(config("many", name, forEach=loops), spec=NAMES)
    assert compiled(config("many", name, forEach=loops), spec=NAMES, most_dimensions=11).nodes
