"""A region's operators recorded while it runs, to be told from any other program.

Tensors are told apart by what they are, not by their values: a tensor that is neither an input nor
what a recorded operator returned is hidden, and a region that reads one is no function of its
inputs. Only inputs are kept alive; everything else is remembered by weak references.
"""

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import Tensor
from torch._ops import OpOverload

from kernelforge_engine.calls import Argument, Call, Json, OutputSpec, Region, Step
from kernelforge_engine.dispatch.encode import (
    Unguardable,
    encode_value,
    parameters,
    schema,
    schema_values,
    spec_of,
)
from kernelforge_engine.dispatch.regions import Entered

MOST_STEPS = 64
LIFTED, SCALAR = torch.ops.aten.lift_fresh.default, torch.ops.aten.scalar_tensor.default
ABSENT = -1
FORMS: Mapping[type, Literal["tensor", "tuple", "list"]] = {
    Tensor: "tensor",
    tuple: "tuple",
    list: "list",
}
NO_TENSORS = "it returns something else than tensors"


class Recording:
    """The operators of one open region, in the order they ran.

    `terms` says how many terms an element of an operator's output sums.
    """

    def __init__(self, given: Entered, terms: Callable[[Call], int] = lambda _: 1) -> None:
        self.given = given
        self._terms = terms
        self.steps: list[Step] = []
        self.terms = 1
        self.computing = 0  # steps that touch memory: neither views nor mere allocations
        self._device = given.tensors[0].device
        self._memory = {_storage(t) for t in given.tensors if t.numel()}
        self._count = len(given.tensors)
        self._numbers = dict(given.numbers)
        self._refs = {id(t): weakref.ref(t) for t in given.tensors}

    def add(self, op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> None:
        """Record an operator that has run.

        Raises:
            Unguardable: with it the region is no target; the text says why.
        """
        if len(self.steps) == MOST_STEPS:
            raise TooLong
        if op is LIFTED and (value := self._literal(lifted := args[0])) is not None:
            op, args, kwargs = SCALAR, (value,), {"dtype": lifted.dtype, "device": lifted.device}
        values, results = schema_values(op, args, kwargs), flattened(out)
        self._refuse_writing(op, values)
        self._refuse_results(results)
        arguments, read = self._arguments(op, values)
        step = Step(
            operator=schema(op).name,
            overload=schema(op).overload_name,
            arguments=arguments if read else _with_dtype(arguments, results),
            results=len(results),
        )
        self.steps.append(step)
        self._measure(op, step, read, [t for t in results if t is not None])
        for result in results:
            self._remember(result)

    def region(self, output: Any, *, kind: Any, owner: str, source: str) -> Region:
        """The region, now that it has returned.

        Raises:
            Unguardable: it returns something else than tensors, or one it was given or found.
        """
        form = FORMS.get(type(output))
        results = (output,) if form == "tensor" else output
        if form is None or not all(r is None or isinstance(r, Tensor) for r in results):
            raise Unguardable(why=NO_TENSORS)
        return Region(
            kind=kind,
            owner=owner,
            source=source,
            steps=tuple(self.steps),
            returns=tuple(ABSENT if r is None else self._known(r) for r in results),
            terms=self.terms,
            form=form,
        )

    def _arguments(
        self, op: OpOverload, values: Sequence[Any]
    ) -> tuple[tuple[Argument, ...], list[Tensor]]:
        """The arguments of a step, and the tensors it reads."""
        read: list[Tensor] = []

        def named(tensor: Tensor) -> Json:
            read.append(tensor)
            return {"tensor": self._known(tensor)}

        def encoded(value: Any) -> Json:
            if isinstance(value, torch.device):
                return {"device": value.type}
            return encode_value(value, named)

        pairs = zip(parameters(op), values, strict=True)
        return tuple(Argument(name=p.name, value=encoded(v)) for p, v in pairs), read

    def _literal(self, tensor: Tensor) -> bool | int | float | None:
        """The number that Python has just made this tensor of, as `y[0] = 1` does."""
        if tensor.ndim or tensor.is_complex() or tensor.device.type != "cpu":
            return None
        return None if self._find(tensor) is not None else tensor.item()

    def _known(self, tensor: Tensor) -> int:
        number = self._find(tensor)
        if number is None:
            raise Unguardable(why="it reads a tensor that is no argument and no parameter")
        return number

    def _find(self, tensor: Tensor) -> int | None:
        """The number of a tensor; `x.data` is another object that is the same memory."""
        ref = self._refs.get(id(tensor))
        if ref is not None and ref() is tensor:
            return self._numbers[id(tensor)]
        alive = [known for ref in self._refs.values() if (known := ref()) is not None]
        same = [known for known in alive if _is_same_memory(known, tensor)]
        return self._numbers[id(same[-1])] if same else None

    def _remember(self, tensor: Tensor | None) -> None:
        if tensor is not None:
            self._refs.pop(id(tensor), None)
            self._refs[id(tensor)] = weakref.ref(tensor)
            self._numbers[id(tensor)] = self._count
        self._count += 1

    def _refuse_writing(self, op: OpOverload, values: Sequence[Any]) -> None:
        for parameter, value in zip(parameters(op), values, strict=True):
            if parameter.alias is None:
                continue
            tensors = [t for t in flattened(value) if isinstance(t, Tensor)]
            if any(_storage(t) in self._memory for t in tensors if t.numel()):
                raise Unguardable(why="it writes an input")

    def _refuse_results(self, results: Sequence[Any]) -> None:
        for result in results:
            if result is not None and not isinstance(result, Tensor):
                raise Unguardable(why="it reads a tensor's value into Python")
            if result is not None and result.device != self._device and result.ndim:
                raise Unguardable(why="it works on more than one device")

    def _measure(
        self, op: OpOverload, step: Step, read: Sequence[Tensor], results: Sequence[Tensor]
    ) -> None:
        """Count the step, and how many terms its elements sum, unless it only makes a view."""
        writes = any(p.alias is not None for p in parameters(op))
        memory = {_storage(t) for t in read}
        is_view = not writes and all(_storage(t) in memory for t in results)
        is_idle = op is SCALAR or "empty" in step.operator
        if is_view or is_idle or not results:
            return
        self.computing += 1
        if read:
            call = Call(
                operator=step.operator,
                overload=step.overload,
                words=(),
                arguments=step.arguments,
                inputs=tuple(spec_of(t) for t in read),
                outputs=tuple(OutputSpec(tensor=spec_of(t)) for t in results),
            )
            self.terms = max(self.terms, self._terms(call))


class TooLong(Unguardable):
    """A region that holds too many operators, as a whole model does."""

    def __init__(self) -> None:
        super().__init__(why=f"it holds more than {MOST_STEPS} operators")


@contextmanager
def below_autograd() -> Iterator[None]:
    """Where composite operators (linear, conv2d, softmax) are still whole."""
    guard = torch._C._AutoDispatchBelowAutograd()
    try:
        yield
    finally:
        del guard


def flattened(value: Any) -> list[Any]:
    """What an operator returned, lists and tuples flattened, None included."""
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in flattened(item)]
    return [value]


def _with_dtype(arguments: tuple[Argument, ...], results: Sequence[Any]) -> tuple[Argument, ...]:
    """A new tensor's dtype said in so many words, since torch's default is no argument."""
    dtypes = {spec_of(t).dtype for t in results if t is not None}
    if len(dtypes) != 1:
        return arguments
    said: Json = {"dtype": dtypes.pop()}
    return tuple(
        Argument(name=a.name, value=said) if a.name == "dtype" and a.value is None else a
        for a in arguments
    )


def _is_same_memory(first: Tensor, second: Tensor) -> bool:
    return (
        first.data_ptr() == second.data_ptr() != 0
        and first.dtype == second.dtype
        and first.shape == second.shape
        and first.stride() == second.stride()
    )


def _storage(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
