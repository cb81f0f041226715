"""A list of namespaces, in a ConfigMap: version 2 of the hooks has cluster-scoped objects for a namespaced parent."""

import lamina


@lamina.sync(
    "ctl.example.com/v1/namespacecatalogues",
    children=["v1/configmaps"],
    generate_selector=True,
    version="v2",
)
def namespaces(parent: lamina.Obj, related: lamina.Objects) -> list[lamina.Obj]:
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": parent["metadata"]["name"]},
            "data": {"names": "\n".join(sorted(related["Namespace.v1"]))},
        }
    ]


@namespaces.customize
def seeing(parent: lamina.Obj) -> list[lamina.Related]:
    return [lamina.Related("v1/namespaces", labels=parent["spec"].get("labels"))]
