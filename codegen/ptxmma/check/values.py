"""What assemblers look at of an operand, its *value*.

It is the type of a register (``"b32"``), the number of an integer constant, :data:`FLOAT` or :data:`DOUBLE` for other constants, one of
the other names below, or a tuple of these for a list in braces.
"""

from __future__ import annotations

import functools

FLOAT, DOUBLE = "constant f32", "constant f64"
UNDECLARED = "undeclared"  # a name that no declaration has
SINK = "_"
NEGATED = "negated predicate"  # !%p
UNREGISTERED = "no register"  # a special register or a variable: in lists it has its type
ADDRESS = "address"  # [...]
BROKEN = "broken"  # nothing that can be read
ANYTHING = "anything"  # it fits whatever is asked: a placeholder

#: The type of a predicate.
PREDICATE = "pred"

Scalar = str | int
Value = Scalar | tuple[Scalar, ...]


@functools.cache
def class_of(value: Scalar) -> str:
    """Neighbours in a list must be of one class; "" goes with any."""
    if isinstance(value, int):
        return "integer"
    if value in (FLOAT, DOUBLE):
        return "float"
    if value in (SINK, ANYTHING) or value.startswith("b"):
        return ""
    if value[0] in "us":
        return "integer"
    return value if value.endswith("x2") or value == PREDICATE else "float"
