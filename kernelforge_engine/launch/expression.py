"""The closed expression grammar of launch headers, over Python's own parser; nothing is evaluated
that the table below does not name.

`+ - * / %`, parentheses, `ceil_div(a, b)`, `min(...)`, `max(...)`, `next_pow2(a)`, numbers, names,
`name[i]`, and on a tensor `.shape[i]`, `.stride[i]` (elements) and `.numel`. `/` between integers
floors. Negative indices count from the end.
"""

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kernelforge_engine.calls import Json, TensorSpec

MAX_LENGTH = 400
MAX_MAGNITUDE = 1 << 62

Number = int | float
Value = Number | tuple[int, ...] | TensorSpec | Json


class ExpressionError(ValueError):
    """An expression that cannot be parsed or has no value here; the text says why."""


def _divide(a: Number, b: Number) -> Number:
    if b == 0:
        raise ExpressionError("division by zero")
    return a // b if isinstance(a, int) and isinstance(b, int) else a / b


def _modulo(a: Number, b: Number) -> Number:
    if b == 0:
        raise ExpressionError("modulo by zero")
    return a % b


def _ceil_div(a: Number, b: Number) -> int:
    if not (isinstance(a, int) and isinstance(b, int)):
        raise ExpressionError("ceil_div takes integers")
    return -int(_divide(-a, b))


def _next_pow2(a: Number) -> int:
    if not math.isfinite(a):
        raise ExpressionError("next_pow2 takes a finite number")
    return 1 << max(0, math.ceil(a) - 1).bit_length()


OPERATORS: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: _divide,
    ast.Mod: _modulo,
}
FUNCTIONS: dict[str, tuple[Callable[..., Number], int, int]] = {
    "ceil_div": (_ceil_div, 2, 2),
    "next_pow2": (_next_pow2, 1, 1),
    "min": (min, 2, 8),
    "max": (max, 2, 8),
}


@dataclass(frozen=True)
class _Evaluator:
    names: Mapping[str, Value]

    def value(self, node: ast.expr) -> Value:
        """The value of a node: a number, or something that still has to be indexed."""
        match node:
            case ast.Constant(value=bool()):
                raise ExpressionError("true and false are not numbers here")
            case ast.Constant(value=int() | float() as number):
                return number
            case ast.Name(id=name):
                return self._name(name)
            case ast.Attribute(value=inner, attr=attr):
                return self._attribute(self.value(inner), attr)
            case ast.Subscript(value=inner, slice=index):
                return self._index(self.value(inner), self.number(index))
        return self._arithmetic(node)

    def _arithmetic(self, node: ast.expr) -> Number:
        match node:
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self.number(operand)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
                return OPERATORS[type(op)](self.number(left), self.number(right))
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
                function, fewest, most = FUNCTIONS[name]
                if not fewest <= len(args) <= most:
                    raise ExpressionError(f"{name} takes {fewest} to {most} arguments")
                return function(*[self.number(a) for a in args])
        raise ExpressionError(f"{ast.unparse(node)!r} is not part of the grammar")

    def number(self, node: ast.expr) -> Number:
        """The value of a node that must be a number."""
        value = self.value(node)
        if isinstance(value, bool):
            return int(value)
        if not isinstance(value, int | float):
            raise ExpressionError(f"{ast.unparse(node)!r} is not a number")
        if isinstance(value, int) and abs(value) > MAX_MAGNITUDE:
            raise ExpressionError(f"{ast.unparse(node)!r} is too large")
        return value

    def _name(self, name: str) -> Value:
        if name not in self.names:
            known = ", ".join(sorted(self.names))
            raise ExpressionError(f"unknown name {name!r}; known here: {known}")
        return self.names[name]

    @staticmethod
    def _attribute(value: Value, attr: str) -> Value:
        if not isinstance(value, TensorSpec) or attr not in ("shape", "stride", "numel"):
            raise ExpressionError(f"only tensors have .shape, .stride and .numel, not .{attr}")
        found: Value = getattr(value, attr)
        return found

    @staticmethod
    def _index(value: Value, index: Number) -> Value:
        if not isinstance(value, list | tuple) or not isinstance(index, int):
            raise ExpressionError("only shapes, strides and lists are indexed, by an integer")
        if not -len(value) <= index < len(value):
            raise ExpressionError(f"index {index} is out of range for {len(value)} entries")
        return value[index]


def parse(text: str) -> ast.expr:
    """The syntax tree of an expression, or ExpressionError."""
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"longer than {MAX_LENGTH} characters")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ExpressionError("not an expression") from error


def evaluate(text: str, names: Mapping[str, Value]) -> Number:
    """The number an expression has under `names`, or ExpressionError with the reason."""
    try:
        return _Evaluator(names).number(parse(text))
    except (OverflowError, RecursionError, TypeError) as error:
        raise ExpressionError(f"{text!r} has no value here") from error
