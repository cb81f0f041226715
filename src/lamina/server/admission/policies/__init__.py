"""ValidatingAdmissionPolicies: matching, evaluation and type checking."""
