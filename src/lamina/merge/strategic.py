"""
Strategic merge patch: a partial object whose lists are merged by the schema.

Maps are merged, and null deletes. The schema has the patch strategy of a list:
most are replaced; some are merged as sets; and some hold objects with a merge
key, and those with equal keys are merged. A patch may contain directives:

    $patch: replace             in a map: replaces the map; in a list: replaces the list
    $patch: delete              in a map: empties it; in a list: deletes the element with this key
    $setElementOrder/LIST       the order of a merged list
    $deleteFromPrimitiveList/LIST   the elements to delete from a set
    $retainKeys                 the only fields that are kept

A merged list has its patched elements in the order of `$setElementOrder`, or
else of the patch, and the others in their old order. Where both orders allow
it, elements keep their relative order in the old list.
"""

from __future__ import annotations

from typing import Any, Final

from lamina.errors import BadRequest, Invalid, Unclassified
from lamina.merge.go_format import json_kind, plain, type_name
from lamina.merge.schema import Schema
from lamina.objects.diff import is_same
from lamina.objects.types import Made, Obj

_DIRECTIVE: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_ORDER: Final = "$setElementOrder"
_DELETE: Final = "$deleteFromPrimitiveList"


def merged(target: Obj, patch: Any, schema: Schema | None) -> Made:
    """Return an object with a patch merged into it. Arguments are not changed; a null patch changes nothing."""
    if patch is None:
        return dict(target)
    if not isinstance(patch, dict):
        raise BadRequest(
            f"json: cannot unmarshal {json_kind(patch)} into Go value of type map[string]interface {{}}"
        )
    return _merged_map(dict(target), patch, schema)


def _merged_map(old: Made, patch: Made, schema: Schema | None) -> Made:
    """Merge a patch into a map, which this function may change."""
    if _DIRECTIVE in patch:
        directive = patch[_DIRECTIVE]
        if directive == "replace":
            return {key: value for key, value in patch.items() if key != _DIRECTIVE}
        if directive == "delete":
            return {}
        raise _unknown_directive(patch)
    made = _retained(old, patch)
    ordered = {key.partition("/")[2]: value for key, value in patch.items() if key.startswith(_ORDER)}
    for name in ordered:
        if not name:
            raise BadRequest("invalid patch format of setElementOrder list")
    for key, value in patch.items():
        if key == _RETAIN or key.startswith((_ORDER, _DELETE)):
            continue
        below = schema.child(key) if schema else None
        if key in ordered and value is not None:
            _merge_ordered(made, key, value, ordered.pop(key), below)
        elif value is None:
            made.pop(key, None)
        else:
            _merge_field(made, key, value, below)
    for key, order in ordered.items():
        if isinstance(made.get(key), list):
            _merge_ordered(made, key, [], order, schema.child(key) if schema else None)
    for key, value in patch.items():
        if key.startswith(_DELETE):
            _delete_from(made, key, value)
    return made


def _merge_field(made: Made, key: str, value: Any, schema: Schema | None) -> None:
    old = made.get(key)
    strategy = schema.patch_strategies if schema else frozenset()
    if isinstance(old, dict) and isinstance(value, dict):
        made[key] = value if "replace" in strategy else _merged_map(dict(old), value, schema)
    elif isinstance(old, list) and isinstance(value, list):
        if "merge" in strategy and schema is not None:
            made[key] = _merged_list(old, value, schema)
        else:
            made[key] = value
    else:
        taken = _new_value(value)
        if taken is _NOTHING:
            made.pop(key, None)
        else:
            made[key] = taken


_NOTHING: Final = object()


def _new_value(value: Any) -> Any:
    """Return a new value without nulls and directives, which have no effect where there was no value."""  # fmt: skip
    if isinstance(value, dict):
        if _DIRECTIVE in value:
            return _NOTHING
        kept = {
            key: _new_value(held)
            for key, held in value.items()
            if held is not None and key != _RETAIN and not key.startswith((_ORDER, _DELETE))
        }
        return {key: held for key, held in kept.items() if held is not _NOTHING}
    if isinstance(value, list):
        return [held for held in map(_new_value, value) if held is not _NOTHING]
    return value


def _retained(old: Made, patch: Made) -> Made:
    if _RETAIN not in patch:
        return old
    names = patch[_RETAIN]
    if not isinstance(names, list):
        raise BadRequest("invalid patch format of retainKeys")
    for key, value in patch.items():
        if key == _RETAIN or value is None or key.startswith((_ORDER, _DELETE)):
            continue
        if key not in names:
            raise BadRequest("invalid patch format of retainKeys")
    return {key: value for key, value in old.items() if key in names}


# Lists


def _merge_ordered(made: Made, key: str, patch: Any, order: Any, schema: Schema | None) -> None:
    """Merge a list whose order is given."""
    old = made.get(key)
    for given in (order, patch, [] if old is None else old):
        if not isinstance(given, list):
            raise Unclassified(f"expected a []interface {{}}, but received a {type_name(given)}")
    merge_key = schema.patch_key if schema else ""
    _check_order(patch, order, merge_key)
    if old is None:
        result = _new_value(patch)
    elif not patch:
        result = old
    elif schema is not None and "merge" in schema.patch_strategies:
        result = _merged_list(old, patch, schema)
    else:
        result = patch
    if result:
        _element_kind(old or [], patch)
    made[key] = _in_order(result, order, _refilled(old or [], result, merge_key), merge_key)


def _refilled(old: list[Any], result: list[Any], key: str) -> list[Any]:
    """
    Return the old list whose order kube-apiserver uses: new elements take the indexes of deleted ones.
    """
    before = [_key_of(item, key) for item in old]
    after = [_key_of(item, key) for item in result]
    kept = [item for item, rank in zip(old, before, strict=True) if rank in after]
    new = [item for item, rank in zip(result, after, strict=True) if rank not in before]
    return [*kept, *new[: len(old) - len(kept)]]


def _merged_list(old: list[Any], patch: list[Any], schema: Schema) -> list[Any]:
    if not old and not patch:
        return old
    if _element_kind(old, patch) is not dict:
        both = [*old, *(value for value in patch if value not in old)]
        return _in_order(list(dict.fromkeys(both)), patch, old, "")
    key = schema.patch_key
    if not key:
        raise Unclassified(f"cannot merge lists without merge key for {schema.name or 'struct'}")
    old, patch = _special_elements(old, patch, key)
    result = list(old)
    for item in patch:
        if key not in item:
            raise _no_merge_key(item, key)
        place = _place_of(result, key, item[key])
        if place is None:
            result.append(_new_value(item))
        else:
            result[place] = _merged_map(dict(result[place]), item, schema.items)
    return _in_order(result, patch, old, key)


def _special_elements(old: list[Any], patch: list[Any], key: str) -> tuple[list[Any], list[Any]]:
    """Return both lists after the directives among the patch's elements have been executed and removed."""
    plain_elements = []
    replace = False
    for item in patch:
        if _DIRECTIVE not in item:
            plain_elements.append(item)
            continue
        match item[_DIRECTIVE]:
            case "delete":
                if key not in item:
                    raise _no_merge_key(item, key)
                old = [other for other in old if not is_same(other.get(key, _NOTHING), item[key])]
            case "replace":
                replace = True
            case "merge":
                raise Unclassified("merging lists cannot yet be specified in the patch")
            case _:
                raise _unknown_directive(item)
    return (plain_elements, []) if replace else (old, plain_elements)


def _delete_from(made: Made, directive: str, values: Any) -> None:
    name = directive.partition("/")[2]
    if not name or directive.partition("/")[0] != _DELETE:
        raise BadRequest("invalid patch format of primitive list")
    if isinstance(made.get(name), list) and isinstance(values, list):
        made[name] = [value for value in made[name] if not any(is_same(value, gone) for gone in values)]


def _element_kind(*lists: list[Any]) -> type:
    """Return the type of all elements; raises where they differ, or are lists themselves."""
    kinds = {item.__class__ for items in lists for item in items}
    if list in kinds:
        refused = Invalid("the server rejected our request due to an error in our request")
        refused.hint = "lists of lists are not supported"
        refused.shows_details = True
        raise refused
    if len(kinds) > 1:
        raise Unclassified(f"list element types are not identical: {plain(list(lists))}")
    if not kinds:
        raise Unclassified("no elements in any of the given slices")
    kind: type = kinds.pop()
    return kind


def _check_order(patch: list[Any], order: list[Any], key: str) -> None:
    """Refuse an order that does not contain the patch's elements in their order."""
    if not patch or not order:
        return
    brought = [item for item in patch if not (isinstance(item, dict) and _DIRECTIVE in item)]
    places = iter(order)
    for item in brought:
        wanted = _key_of(item, key)
        if not any(is_same(_key_of(other, key), wanted) for other in places):
            raise Unclassified(
                f"The order in patch list:\n{plain(patch)}\n doesn't match {_ORDER} list:\n{plain(order)}\n"
            )


def _in_order(items: list[Any], order: list[Any], old: list[Any], key: str) -> list[Any]:
    """Return a merged list with the elements of `order` in that order, and the rest in that of the old list."""
    ranks = [_key_of(item, key) for item in order]
    old_ranks = [_key_of(item, key) for item in old]
    keyed = [(_key_of(item, key), item) for item in items]
    ours = sorted(((ranks.index(rank), rank, item) for rank, item in keyed if rank in ranks), key=_first)
    theirs = sorted(
        (
            (old_ranks.index(rank) if rank in old_ranks else -1, rank, item)
            for rank, item in keyed
            if rank not in ranks
        ),
        key=_first,
    )
    result = []
    while ours and theirs:
        place, _, _ = theirs[0]
        rank = ours[0][1]
        before = place >= 0 and rank in old_ranks and place < old_ranks.index(rank)
        result.append((theirs if before else ours).pop(0)[2])
    return [*result, *(item for _, _, item in (*ours, *theirs))]


def _first(ranked: tuple[int, Any, Any]) -> int:
    return ranked[0]


def _key_of(item: Any, key: str) -> Any:
    if not key:
        return item
    if not isinstance(item, dict):
        raise Unclassified(f"expected a map[string]interface {{}}, but received a {type_name(item)}")
    if key not in item:
        raise _no_merge_key(item, key)
    return item[key]


def _place_of(items: list[Any], key: str, value: Any) -> int | None:
    for place, item in enumerate(items):
        if not isinstance(item, dict):
            raise Unclassified(f"value for key {place} is not a map")
        if key in item and is_same(item[key], value):
            return place
    return None


def _no_merge_key(item: Made, key: str) -> Unclassified:
    return Unclassified(f"map: {plain(item)} does not contain declared merge key: {key}")


def _unknown_directive(patch: Made) -> Unclassified:
    return Unclassified(f"unknown patch type: {plain(patch[_DIRECTIVE])} in map: {plain(patch)}")
