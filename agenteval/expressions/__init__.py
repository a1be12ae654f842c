"""CEL expressions and the templates built on them.

Knows CEL and JSON; must not know tasks or tools. CEL has no clock and no input or output, so a value depends on its
inputs alone; what macros do is put in order, counted and bounded.
"""

from agenteval.expressions.functions import FUNCTIONS, MAX_SIZE, size_of
from agenteval.expressions.macros import conjuncts, without_texts
from agenteval.expressions.parsing import (
    MAX_EXPRESSION_LENGTH,
    Expression,
    ExpressionError,
    compile_expression,
    condition_problem,
    unknown_names,
)
from agenteval.expressions.scope import EVALUATION_TIMEOUT_S, MAX_STEPS, Scope, evaluate, evaluate_condition
from agenteval.expressions.templates import (
    as_text,
    has_template,
    pointer_part,
    problems,
    render,
    render_pointer,
    split_template,
    texts,
)
from agenteval.expressions.values import PATTERN_TIMEOUT_S, has_all, is_same, pattern_matches, pattern_problem

__all__ = [
    "EVALUATION_TIMEOUT_S",
    "FUNCTIONS",
    "MAX_EXPRESSION_LENGTH",
    "MAX_SIZE",
    "MAX_STEPS",
    "PATTERN_TIMEOUT_S",
    "Expression",
    "ExpressionError",
    "Scope",
    "as_text",
    "compile_expression",
    "condition_problem",
    "conjuncts",
    "evaluate",
    "evaluate_condition",
    "has_all",
    "has_template",
    "is_same",
    "pattern_matches",
    "pattern_problem",
    "pointer_part",
    "problems",
    "render",
    "render_pointer",
    "size_of",
    "split_template",
    "texts",
    "unknown_names",
    "without_texts",
]
