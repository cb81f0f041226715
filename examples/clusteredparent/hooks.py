"""A RoleBinding in one namespace for a ClusterRole that names a service account."""

import lamina


@lamina.decorate(
    "rbac.authorization.k8s.io/v1/clusterroles",
    attachments=["rbac.authorization.k8s.io/v1/rolebindings"],
    annotation_exists=["default-service-account-binding"],
)
def given(object: lamina.Obj) -> list[lamina.Obj]:
    name = object["metadata"]["name"]
    group, account = (
        "rbac.authorization.k8s.io",
        object["metadata"]["annotations"]["default-service-account-binding"],
    )
    return [
        {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": name, "namespace": "default"},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "default"}],
            "roleRef": {"kind": "ClusterRole", "name": name, "apiGroup": group},
        }
    ]
