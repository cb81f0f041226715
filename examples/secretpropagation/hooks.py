"""A Secret that is copied into the namespaces with a label."""

import lamina


@lamina.sync("ctl.example.com/v1/secretpropagations", children=["v1/secrets"], generate_selector=True)
def secrets(parent: lamina.Obj, related: lamina.Objects) -> lamina.Response:
    copies = [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": source["metadata"]["name"], "namespace": namespace},
            "type": source["type"],
            "data": source.get("data", {}),
        }
        for source in related["Secret.v1"].values()
        for namespace in related["Namespace.v1"]
    ]
    return lamina.Response(children=copies, status={"copies": len(copies)})


@secrets.customize
def seeing(parent: lamina.Obj) -> list[lamina.Related]:
    spec = parent["spec"]
    return [
        lamina.Related("v1/secrets", namespace=spec["sourceNamespace"], names=[spec["sourceName"]]),
        lamina.Related("v1/namespaces", labels=spec["targetNamespaceLabels"]),
    ]
