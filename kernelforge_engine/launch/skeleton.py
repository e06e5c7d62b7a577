"""A candidate to begin with: it parses, resolves and compiles for a call, and computes nothing yet.

Sizes are read through expressions, so that one text serves every size of a shape family.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from kernelforge_engine.calls import Call, Json, TensorSpec
from kernelforge_engine.launch.c_types import HELPERS, INCLUDES, KEYWORDS, KINDS, Cell, cell
from kernelforge_engine.launch.describe import is_contiguous, owners, tensor_text
from kernelforge_engine.launch.expression import ExpressionError, evaluate
from kernelforge_engine.launch.resolve import F32_MOST, environment

MAX_ARGUMENTS = 64
MAX_LISTED = 8  # entries of one list argument that are passed, and counts in one expression
BLOCK = 256
LOCALS = frozenset(("i", "x", "rest", "first", "step"))
LINE = 90


def skeleton(call: Call) -> str:
    """The text of a candidate for a call: every output is written, as a copy of an input of its
    shape where there is one, else with zeros."""
    return _Skeleton(call).text()


@dataclass(frozen=True)
class _Number:
    """A number that the kernel takes: its parameter, its kind and the expression it comes from."""

    name: str
    kind: str
    expression: str


@dataclass(frozen=True)
class _Skeleton:
    call: Call

    def text(self) -> str:
        dtypes = {spec.dtype for spec in self._specs.values()}
        needed = INCLUDES if self._cuda else HELPERS
        shared = [needed[dtype] for dtype in sorted(dtypes & needed.keys())]
        return "\n".join([*self._header(), *shared, *self._legend(), *self._kernel()]) + "\n"

    @property
    def _cuda(self) -> bool:
        return self.call.backend == "cuda"

    @cached_property
    def _outputs(self) -> list[str]:
        return [f"out{k}" for k in range(len(self.call.outputs))]

    @cached_property
    def _specs(self) -> dict[str, TensorSpec]:
        inputs = {f"in{i}": spec for i, spec in enumerate(self.call.inputs)}
        return inputs | dict(zip(self._outputs, (o.tensor for o in self.call.outputs), strict=True))

    @cached_property
    def _counts(self) -> dict[str, str]:
        """The let that holds every output's number of elements."""
        many = len(self._outputs) > 1
        return {out: self._free(f"n{k}" if many else "n") for k, out in enumerate(self._outputs)}

    def _free(self, name: str) -> str:
        """A name that no argument of the operator has taken."""
        taken = environment(self.call)
        while name in taken:
            name += "_"
        return name

    def _source(self, out: str) -> str | None:
        """The buffer an output is copied from: what it overwrites, or an input of its shape."""
        if self.call.outputs[self._outputs.index(out)].alias is not None:
            return out
        shape = self._specs[out].shape
        return next((f"in{i}" for i, t in enumerate(self.call.inputs) if t.shape == shape), None)

    def _walked(self, out: str) -> list[str]:
        """The buffers that the loop over an output goes through."""
        return list(dict.fromkeys((out, self._source(out) or out)))

    def _strided(self, out: str) -> list[str]:
        return [name for name in self._walked(out) if not is_contiguous(self._specs[name])]

    @cached_property
    def _sizes(self) -> list[_Number]:
        """What the loops need: counts, and the layout of what is not contiguous."""
        found = [_Number(name, "i64", name) for name in self._counts.values()]
        for out in self._outputs:
            strided, rank = self._strided(out), range(len(self._specs[out].shape))
            if strided:
                found += [_Number(f"{out}_d{d}", "i64", f"{out}.shape[{d}]") for d in rank[1:]]
            for name in strided:
                found += [_Number(f"{name}_s{d}", "i64", f"{name}.stride[{d}]") for d in rank]
        return list(dict.fromkeys(found))

    @cached_property
    def _scalars(self) -> list[_Number]:
        """The operator's own numbers."""
        wide = any(spec.dtype == "float64" for spec in self._specs.values())
        found = [_Number(_parameter(t), _kind(value, wide), t) for t, value in self._plain()]
        return [number for number in found if number.kind]

    def _plain(self) -> Iterator[tuple[str, Json]]:
        """Expressions that stand for the operator's numbers and have a value here, with it."""
        known = environment(self.call)
        for argument in self.call.arguments:
            name, value = argument.name, argument.value
            entries = [(name, value)]
            if isinstance(value, list):
                entries = [(f"{name}[{i}]", entry) for i, entry in enumerate(value[:MAX_LISTED])]
            for text, entry in entries if name in known else ():
                try:
                    evaluate(text, known)
                except ExpressionError:  # such a name, or so large a number, cannot be passed
                    continue
                yield text, entry

    @cached_property
    def _buffers(self) -> list[str]:
        """The buffers that are passed, each memory block once, as many inputs as there is room."""
        overwritten = {f"in{o.alias}" for o in self.call.outputs if o.alias is not None}
        inputs = [n for n in self._specs if n not in self._outputs and n not in overwritten]
        read = [n for out in self._outputs for n in self._walked(out) if n in inputs]
        room = MAX_ARGUMENTS - len(self._outputs) - len(self._sizes)
        kept = set(list(dict.fromkeys([*read, *inputs]))[:room])
        return [*(name for name in inputs if name in kept), *self._outputs]

    @cached_property
    def _numbers(self) -> list[_Number]:
        return [*self._sizes, *self._scalars][: MAX_ARGUMENTS - len(self._buffers)]

    @cached_property
    def _kernel_name(self) -> str:
        plain = re.sub(r"\W+", "_", self.call.operator.rpartition("::")[2]).strip("_")
        return f"{plain}_kernel" if plain[:1].isalpha() else f"run{plain}_kernel"

    def _header(self) -> list[str]:
        counts = list(self._counts.values())
        lines = ["/* kernelforge", "[let]"]
        lines += [f'{name} = "{out}.numel"' for out, name in self._counts.items()]
        lines += ["[[launch]]", f'kernel = "{self._kernel_name}"']
        if self._cuda:
            most = f"max({', '.join(counts[:MAX_LISTED])})" if counts[1:] else counts[0]
            lines.append(f'grid = ["min(ceil_div({most}, {BLOCK}), 65535)", 1, 1]')
            lines.append(f"block = [{BLOCK}, 1, 1]")
        numbers = [f"{number.kind}:{number.expression}" for number in self._numbers]
        quoted = [f'"{text}"' for text in [*self._buffers, *numbers]]
        return [*lines, *_wrapped("args = [", quoted, "]"), "*/"]

    def _legend(self) -> list[str]:
        """What the buffers are, as comments."""
        whose = {f"in{i}": f" {name}" for i, name in owners(self.call).items()}
        same = {
            out: f", the block of in{output.alias}"
            for out, output in zip(self._outputs, self.call.outputs, strict=True)
            if output.alias is not None
        }
        shown = [*self._buffers[: -len(self._outputs)][:MAX_LISTED], *self._outputs[:MAX_LISTED]]
        left = len(self._specs) - len(same) - len(shown)
        return [
            f"// {name}{whose.get(name, '')}: {tensor_text(self._specs[name])}{same.get(name, '')}"
            for name in shown
        ] + ([f"// and {left} buffers more"] if left else [])

    def _kernel(self) -> list[str]:
        parameters = [
            f"{'' if name in self._outputs else 'const '}{self._cell(name).type}* {name}"
            for name in self._buffers
        ]
        parameters += [f"{KINDS[number.kind]} {number.name}" for number in self._numbers]
        start = f'extern "C" {"__global__ " if self._cuda else ""}void {self._kernel_name}('
        lines = _wrapped(start, parameters, ") {")
        if self._cuda:
            lines += [
                "  const long long first = blockIdx.x * (long long)blockDim.x + threadIdx.x;",
                "  const long long step = gridDim.x * (long long)blockDim.x;",
            ]
        for out in self._outputs:
            lines += self._loop(out)
        return [*lines, "}"]

    def _cell(self, name: str) -> Cell:
        return cell(self._specs[name].dtype, self.call.backend)

    def _loop(self, out: str) -> list[str]:
        first, step = ("first", "i += step") if self._cuda else ("0", "++i")
        source, target = self._source(out), self._cell(out)
        value = self._cell(source).load(f"{source}[{self._at(source)}]") if source else "0"
        return [
            f"  for (long long i = {first}; i < {self._counts[out]}; {step}) {{",
            *(self._coordinates(out) if self._strided(out) else ()),
            f"    const {target.wide} x = {value};",
            f"    {out}[{self._at(out)}] = {target.store('x')};",
            "  }",
        ]

    def _coordinates(self, out: str) -> list[str]:
        inner = range(1, len(self._specs[out].shape))
        return [
            "    long long rest = i;",
            *(
                f"    const long long c{d} = rest % {out}_d{d}; rest /= {out}_d{d};"
                for d in reversed(inner)
            ),
            "    const long long c0 = rest;",
        ]

    def _at(self, name: str) -> str:
        """Where element i of a buffer lies."""
        spec = self._specs[name]
        if is_contiguous(spec):
            return "i"
        return " + ".join(f"c{d} * {name}_s{d}" for d in range(len(spec.shape)))


def _parameter(expression: str) -> str:
    """A number's name in C++."""
    name = expression.replace("[", "_").rstrip("]")
    return f"{name}_" if name in KEYWORDS or name in LOCALS else name


def _kind(value: Json, wide: bool) -> str:
    """How a number is passed; empty for what cannot be an argument of a launch."""
    if isinstance(value, bool):
        return "i32"
    if isinstance(value, int):
        return "i64"
    if not isinstance(value, float) or not math.isfinite(value):
        return ""
    return "f64" if wide or abs(value) > F32_MOST else "f32"


def _wrapped(start: str, entries: list[str], end: str) -> list[str]:
    """A list of entries on as few lines as can be read."""
    one = f"{start}{', '.join(entries)}{end}"
    if len(one) <= LINE:
        return [one]
    lines = [start]
    for position, entry in enumerate(entries):
        text = entry + ("," if position + 1 < len(entries) else "")
        if len(lines) > 1 and len(lines[-1]) + 1 + len(text) <= LINE:
            lines[-1] += f" {text}"
        else:
            lines.append(f"    {text}")
    return [*lines, end]
