"""The controller of ObjectDeployments: revisions are created, archived and pruned."""
