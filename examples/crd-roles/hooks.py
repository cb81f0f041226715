"""A role to read the objects of a kind, for every definition with an annotation."""

import lamina


@lamina.decorate(
    "apiextensions.k8s.io/v1/customresourcedefinitions",
    attachments=["rbac.authorization.k8s.io/v1/clusterroles"],
    annotations={"enable-default-roles": "yes"},
)
def crd_roles(object: lamina.Obj) -> list[lamina.Obj]:
    names, group = object["spec"]["names"], object["spec"]["group"]
    return [
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": f"{object['metadata']['name']}-reader"},
            "rules": [
                {"apiGroups": [group], "resources": [names["plural"]], "verbs": ["get", "list", "watch"]}
            ],
        }
    ]
