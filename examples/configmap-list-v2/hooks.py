"""A list of the ConfigMaps of another namespace, in a ConfigMap: version 2 of the hooks has objects of other namespaces."""

import lamina


@lamina.sync(
    "ctl.example.com/v1/configmapcatalogues",
    children=["v1/configmaps"],
    generate_selector=True,
    version="v2",
)
def catalogue(parent: lamina.Obj, related: lamina.Objects) -> list[lamina.Obj]:
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": parent["metadata"]["name"]},
            "data": {"names": "\n".join(sorted(related["ConfigMap.v1"]))},
        }
    ]


@catalogue.customize
def seeing(parent: lamina.Obj) -> list[lamina.Related]:
    return [lamina.Related("v1/configmaps", namespace=parent["spec"]["namespace"], labels={"listed": "yes"})]
