"""A ConfigMap that is copied into the namespaces of a list."""

import lamina


@lamina.sync(
    "ctl.example.com/v1/configmappropagations",
    children=["v1/configmaps"],
    labels={"propagate": "yes"},
    generate_selector=True,
)
def propagation(parent: lamina.Obj, related: lamina.Objects) -> lamina.Response:
    copies = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": source["metadata"]["name"], "namespace": namespace},
            "data": source.get("data", {}),
        }
        for source in related["ConfigMap.v1"].values()
        for namespace in parent["spec"]["targetNamespaces"]
    ]
    return lamina.Response(children=copies, status={"copies": len(copies)})


@propagation.customize
def seeing(parent: lamina.Obj) -> list[lamina.Related]:
    spec = parent["spec"]
    return [lamina.Related("v1/configmaps", namespace=spec["sourceNamespace"], names=[spec["sourceName"]])]
