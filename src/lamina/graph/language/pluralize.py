"""
English plurals of lower-case words, equal to those of the library flect 1.0.3.

Upstream names its generated kinds with that library, so another plural would give an
existing kind another name. A word is looked up; else the first matching suffix decides, those of
irregular words before the general ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

_WORDS: Final = """
aircraft aircraft / beef beef beefs / bison bison / blues blues / chassis chassis / deer deer /
fish fish fishes / moose moose / police police / salmon salmon salmons / series series / sheep sheep /
shrimp shrimp shrimps / species species / swine swine swines / trout trout trouts / tuna tuna tunas /
you you / child children / =ox oxen / foot feet / goose geese / man men / human humans / =louse lice /
mouse mice / tooth teeth / woman women / =die dice / person people / adieu adieux adieus / fabliau fabliaux /
bureau bureaus bureaux / criterion criteria / ganglion ganglia ganglions / lexicon lexica lexicons /
mitochondrion mitochondria mitochondrions / noumenon noumena / phenomenon phenomena / taxon taxa /
media media / medium media / stadium stadiums stadia / aquarium aquaria aquariums /
auditorium auditoria auditoriums / symposium symposia symposiums / curriculum curriculums curricula /
quota quotas / alumnus alumni alumnuses / bacillus bacilli / cactus cacti cactuses / coccus cocci /
focus foci focuses / locus loci locuses / nucleus nuclei nucleuses / octopus octupuses octopi /
radius radii radiuses / syllabus syllabi / corpus corpora corpuses / genus genera / alumna alumnae /
vertebra vertebrae / differentia differentiae / minutia minutiae / vita vitae / larva larvae /
postcava postcavae / praecava praecavae / uva uvae / apex apices apexes / codex codices codexes /
index indices indexes / latex latices latexes / vertex vertices vertexes / vortex vortices vortexes /
appendix appendices appendixes / radix radices radixes / helix helices helixes / =axis axes / crisis crises /
ellipsis ellipses / genesis geneses / oasis oases / thesis theses / testis testes / base bases /
basis bases / =alias aliases / vedalia vedalias / =use uses / abuse abuses / cause causes / clause clauses /
cruse cruses / excuse excuses / fuse fuses / house houses / misuse misuses / muse muses / pause pauses /
ache aches / topaz topazes / buffalo buffaloes buffalos / potato potatoes / tomato tomatoes /
equipment equipment / information information / jeans jeans / money money / news news / rice rice /
dwarf dwarfs dwarves / hoof hoofs hooves / thief thieves / chive chives / hive hives / move moves /
movie movies / cookie cookies / pretorium pretoriums / agenda agendas / formula formulas formulae /
shoe shoes / =toe toes / graffiti graffiti
"""
"""Singular, plural, and another plural that is known as one; `=` marks words that are no suffix of others."""

_SUFFIXES: Final = """
tive tives / eaf eaves / oaf oaves / afe aves / arf arves / rfe rves / rf rves / lf lves / fe ves / ay ays /
ey eys / oy oys / quy quies / uy uys / y ies / eau eaux / bula bulae / dula bulae / lula bulae / nula bulae /
vula bulae / hedron hedra / ium ia / seum seums / eum ea / oum oa / stracum straca / dum da / elum ela /
ilum ila / olum ola / ulum ula / llum lla / ylum yla / imum ima / ernum erna / gnum gna / brum bra /
crum cra / terum tera / serum sera / trum tra / antum anta / atum ata / entum enta / etum eta / itum ita /
otum ota / utum uta / ctum cta / ovum ova / trix trices / iasis iases / mesis meses / kinesis kineses /
resis reses / gnosis gnoses / opsis opses / ysis yses / ouse ouses / lause lauses / us uses / ch ches /
io ios / sh shes / ss sses / ez ezzes / iz izzes / tz tzes / zz zzes / ano anos / lo los / to tos /
oo oos / o oes / x xes
"""

_ACRONYMS: Final = {"ssh": "sshs", "eia": "eias", "tia": "tias"}
"""The library applies no lower-case suffix to acronyms; for those that end in `s` it makes no valid name."""


def _entries(text: str) -> Iterator[list[str]]:
    for entry in text.split("/"):
        yield entry.split()


def _read() -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Return the plurals of words, and the suffixes with their replacements in the order they are tried."""
    words: dict[str, str] = {}
    plurals: set[str] = set()
    suffixes: list[tuple[str, str]] = []
    for marked, plural, *other in _entries(_WORDS):
        singular = marked.removeprefix("=")
        words[singular] = plural
        plurals.update((plural, *other))
        if singular == marked:
            suffixes += ((singular, plural), (plural, plural))
    suffixes.reverse()
    for singular, plural in _entries(_SUFFIXES):
        suffixes += ((plural, plural), (singular, plural))
    return {**{one: one for one in plurals}, **words, **_ACRONYMS}, suffixes


_PLURALS, _RULES = _read()


@lru_cache(maxsize=1024)
def pluralize(word: str) -> str:
    """Return the plural of a lower-case word; a plural stays as it is."""
    if known := _PLURALS.get(word):
        return known
    for suffix, replacement in _RULES:
        if word.endswith(suffix):
            return word[: -len(suffix)] + replacement
    return word if word.endswith("s") else f"{word}s"
