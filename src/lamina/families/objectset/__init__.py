"""ObjectSet, ObjectDeployment, ObjectSetPhase and ObjectSlice of Package Operator, and their Cluster kinds."""
