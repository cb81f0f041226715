"""
The OpenAPI paths, operations and parameters of each kind.

The same operations are published in v2 and v3, so they are values here and encoded
elsewhere. Names, descriptions and differences between built-in and custom kinds are those
of kube-apiserver; media types are those that this server supports.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final, NamedTuple

from lamina.server.kinds.builtin.catalogue import DELETE_RETURNS_OBJECT, PACKAGES
from lamina.server.kinds.builtin.tables import table
from lamina.server.kinds.kind import Kind, Subresource
from lamina.server.openapi.schemas import META, list_name, schema_name

_PRETTY: Final = (
    "If 'true', then the output is pretty printed. Defaults to 'false' unless the user-agent "
    "indicates a browser or command-line HTTP tool (curl and wget)."
)
_PLAIN: Final = ("application/json", "application/yaml")
_ANYTHING: Final = ("*/*",)
_STREAMED: Final = ("application/json", "application/yaml", "application/json;stream=watch")
_PATCHES: Final = ("application/json-patch+json", "application/merge-patch+json")
_STRATEGIC: Final = "application/strategic-merge-patch+json"
_APPLY: Final = "application/apply-patch+yaml"
_LOGS: Final = ("text/plain", *_PLAIN)

_TYPES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("allowWatchBookmarks", "follow", "force", "insecureSkipTLSVerifyBackend"), "boolean"),
    **dict.fromkeys(("ignoreStoreReadErrorWithClusterBreakingPotential", "orphanDependents"), "boolean"),
    **dict.fromkeys(("previous", "sendInitialEvents", "timestamps", "watch"), "boolean"),
    **dict.fromkeys(("gracePeriodSeconds", "limit", "limitBytes", "sinceSeconds"), "integer"),
    **dict.fromkeys(("tailLines", "timeoutSeconds"), "integer"),
}
"""Query parameters that are no strings."""

_NO_PARAMETERS: Final = frozenset(("", "preconditions", "sinceTime"))
"""Fields of options that have no query parameter."""


class Parameter(NamedTuple):
    """A path or query parameter."""

    name: str
    type: str
    description: str
    where: str = "query"


class Operation(NamedTuple):
    """
    One operation of a path.

    `reads` and `answers` are names of schemas; a response without one is text. `subject`
    is the group, version and kind by which clients find an operation, None if it is
    about no kind.
    """

    method: str
    name: str
    description: str
    answers: Mapping[int, str]
    action: str = ""
    subject: tuple[str, str, str] | None = None
    parameters: tuple[Parameter, ...] = ()
    reads: str = ""
    requires: bool = True
    consumes: tuple[str, ...] = _ANYTHING
    produces: tuple[str, ...] = _PLAIN


class Path(NamedTuple):
    """A path, its operations, and its tag in the documentation."""

    path: str
    tag: str
    operations: tuple[Operation, ...]

    @property
    def shared(self) -> tuple[Parameter, ...]:
        """Return the parameters that all operations share, sorted by name; they belong to the path."""
        first, *others = (operation.parameters for operation in self.operations)
        common = [one for one in first if all(one in other for other in others)]
        return tuple(sorted(common, key=lambda parameter: parameter.name))


def paths_of(kind: Kind) -> Iterator[Path]:
    """Yield the paths of a kind."""
    yield from _KindPaths(kind).paths()


def listing(
    path: str, tag: str, name: str, description: str, answer: str, produces: tuple[str, ...] = _PLAIN
) -> Path:
    """Return a path with only a GET: discovery, the version."""
    operation = Operation(
        method="get",
        name=name,
        description=description,
        consumes=produces,
        produces=produces,
        answers={200: answer},
    )
    return Path(path, tag, (operation,))


def tag_of(group: str, version: str = "") -> str:
    """Return the tag of a group or group version: core_v1, rbacAuthorization_v1."""
    tag = identifier(group.removesuffix(".k8s.io") or "core", capital=False)
    return f"{tag}_{version}" if version else tag


@cache
def identifier(text: str, *, capital: bool = True) -> str:
    """Return a text as part of an operation id: letters and digits, with a capital after any other character."""
    made = ""
    for position, char in enumerate(text):
        if char.isalpha() or char == "_" or (position and char.isdigit()):
            made += char.upper() if capital else char
            capital = False
        else:
            capital = True
    return made


@cache
def _options(name: str, *without: str) -> tuple[Parameter, ...]:
    """Return the query parameters of an options kind, with Kubernetes' descriptions."""
    sentences: Mapping[str, str] = table("parameters")[name]
    return tuple(
        Parameter(option, _TYPES.get(option, "string"), text)
        for option, text in sorted(sentences.items())
        if option not in _NO_PARAMETERS and option not in without
    )


class _KindPaths:
    """Builds the paths of one kind."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self._schema = schema_name(kind)
        self._tag = tag_of(kind.group, kind.version)
        self._base = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
        self._within = f"{self._base}/namespaces/{{namespace}}" if kind.namespaced else self._base
        self._reads = _PLAIN if kind.custom else _ANYTHING
        self._always = [Parameter("pretty", "string", _PRETTY)]
        if kind.namespaced:
            about = "object name and auth scope, such as for teams and projects"
            self._always.append(Parameter("namespace", "string", about, "path"))

    def paths(self) -> Iterator[Path]:
        kind = self._kind
        collection = f"{self._within}/{kind.plural}"
        yield from self._path(collection, self._on_collection())
        yield from self._path(f"{collection}/{{name}}", self._on_object())
        for sub in kind.subresources:
            yield from self._path(f"{collection}/{{name}}/{sub.name}", self._on_subresource(sub))
        if kind.namespaced and "list" in kind.verbs:
            everywhere = self._list(everywhere=True)
            yield Path(f"{self._base}/{kind.plural}", self._tag, (everywhere,))

    def _path(self, path: str, operations: Iterator[Operation]) -> Iterator[Path]:
        found = tuple(operations)
        if found:
            yield Path(path, self._tag, found)

    def _on_collection(self) -> Iterator[Operation]:
        verbs = self._kind.verbs
        if "list" in verbs:
            yield self._list()
        if "create" in verbs:
            yield self._create()
        if "deletecollection" in verbs:
            yield self._delete_collection()

    def _on_object(self) -> Iterator[Operation]:
        verbs = self._kind.verbs
        if "get" in verbs:
            yield self._read()
        if "update" in verbs:
            yield self._replace()
        if "patch" in verbs:
            yield self._patch()
        if "delete" in verbs:
            yield self._delete()

    def _on_subresource(self, sub: Subresource) -> Iterator[Operation]:
        if "get" in sub.verbs:
            yield self._read(sub)
        if "create" in sub.verbs:
            yield self._create(sub)
        if "update" in sub.verbs:
            yield self._replace(sub)
        if "patch" in sub.verbs:
            yield self._patch(sub)

    def _list(self, *, everywhere: bool = False) -> Operation:
        watched = "list or watch" if not self._kind.custom else "list"
        always = self._always[:1] if everywhere else self._always
        return Operation(
            method="get",
            name=self._name("list", everywhere=everywhere),
            description=f"{watched} objects of kind {self._kind.kind}",
            action="list",
            subject=self._subject(),
            parameters=(*always, *_options("ListOptions")),
            produces=_PLAIN if self._kind.custom else _STREAMED,
            consumes=self._reads,
            answers={200: list_name(self._kind)},
        )

    def _create(self, sub: Subresource | None = None) -> Operation:
        body = self._body(sub)
        return Operation(
            method="post",
            name=self._name("create", sub),
            description=f"create{_of(sub)}{self._article()}{self._kind.kind}",
            action="post",
            subject=self._subject(sub),
            parameters=(*(self._named(sub) if sub else self._always), *_options("CreateOptions")),
            reads=body,
            consumes=self._reads,
            answers={200: body, 201: body, 202: body},
        )

    def _delete_collection(self) -> Operation:
        if self._kind.custom:
            options = _options("ListOptions")
        else:
            options = (*_options("ListOptions", "allowWatchBookmarks", "watch"), *_options("DeleteOptions"))
        return Operation(
            method="delete",
            name=self._name("delete", collection=True),
            description=f"delete collection of {self._kind.kind}",
            action="deletecollection",
            subject=self._subject(),
            parameters=(*self._always, *options),
            reads="" if self._kind.custom else f"{META}.DeleteOptions",
            requires=False,
            consumes=self._reads,
            answers={200: f"{META}.Status"},
        )

    def _read(self, sub: Subresource | None = None) -> Operation:
        if sub and sub.name == "log":
            options = _options("PodLogOptions")
        else:
            options = _options("GetOptions") if self._kind.custom else ()
        return Operation(
            method="get",
            name=self._name("read", sub),
            description=f"read{_of(sub)} the specified {self._kind.kind}",
            action="get",
            subject=self._subject(sub),
            parameters=(*self._named(sub), *options),
            consumes=self._reads,
            produces=_LOGS if sub and sub.name == "log" else _PLAIN,
            answers={200: "" if sub and sub.name == "log" else self._body(sub)},
        )

    def _replace(self, sub: Subresource | None = None) -> Operation:
        body = self._body(sub)
        return Operation(
            method="put",
            name=self._name("replace", sub),
            description=f"replace{_of(sub)} the specified {self._kind.kind}",
            action="put",
            subject=self._subject(sub),
            parameters=(*self._named(sub), *_options("UpdateOptions")),
            reads=body,
            consumes=self._reads,
            answers={200: body, 201: body},
        )

    def _patch(self, sub: Subresource | None = None) -> Operation:
        body = self._body(sub)
        return Operation(
            method="patch",
            name=self._name("patch", sub),
            description=f"partially update{_of(sub)} the specified {self._kind.kind}",
            action="patch",
            subject=self._subject(sub),
            parameters=(*self._named(sub), *_options("PatchOptions")),
            reads=f"{META}.Patch",
            consumes=(*_PATCHES, _APPLY) if self._kind.custom else (*_PATCHES, _STRATEGIC, _APPLY),
            answers={200: body} if self._kind.custom else {200: body, 201: body},
        )

    def _delete(self) -> Operation:
        answer = self._schema if self._schema in DELETE_RETURNS_OBJECT else f"{META}.Status"
        return Operation(
            method="delete",
            name=self._name("delete"),
            description=f"delete{self._article()}{self._kind.kind}",
            action="delete",
            subject=self._subject(),
            parameters=(*self._named(), *_options("DeleteOptions")),
            reads=f"{META}.DeleteOptions",
            requires=False,
            consumes=self._reads,
            answers={200: answer, 202: answer},
        )

    def _named(self, sub: Subresource | None = None) -> tuple[Parameter, ...]:
        _, _, kind = self._subject(sub)
        return (*self._always, Parameter("name", "string", f"name of the {kind}", "path"))

    def _name(
        self,
        verb: str,
        sub: Subresource | None = None,
        *,
        everywhere: bool = False,
        collection: bool = False,
    ) -> str:
        kind = self._kind
        home = identifier(kind.group.removesuffix(".k8s.io") or "core") + identifier(kind.version)
        where = "Namespaced" if kind.namespaced and not everywhere else ""
        about = f"{kind.kind}{sub.name.capitalize() if sub else ''}"
        ending = "ForAllNamespaces" if everywhere else ""
        return f"{verb}{home}{'Collection' if collection else ''}{where}{about}{ending}"

    def _article(self) -> str:
        kind = self._kind.kind
        if kind.endswith("s") and not kind.endswith("ss"):
            return " "
        return " an " if kind[0].lower() in "aeiou" else " a "

    def _subject(self, sub: Subresource | None = None) -> tuple[str, str, str]:
        # The scale of a custom resource is found by the resource's own kind.
        if sub is None or self._kind.custom:
            return self._kind.group, self._kind.version, self._kind.kind
        return sub.group, sub.version, sub.kind

    def _body(self, sub: Subresource | None) -> str:
        if sub is None or (sub.group, sub.version, sub.kind) == self._subject():
            return self._schema
        return f"{PACKAGES[sub.group, sub.version]}.{sub.kind}"


def _of(sub: Subresource | None) -> str:
    return f" {sub.name} of" if sub else ""
