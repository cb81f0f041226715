"""CEL: the parser, the type checker, the cost estimate and the evaluator."""
