"""Whether an operator call can be a target: four tests, no list of operators.

A trial begins before the call and copies only what the schema says is written. Whether anything
else was written is seen from a sum over its bits, so weights are never copied, however large.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree

from kernelforge_engine.dispatch.encode import parameters
from kernelforge_engine.worker.tensors import copied, flat

JUDGED = {
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.bool,
    torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
}  # fmt: skip
DYNAMIC = (torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output)
RERUNS = 2
WHOLE = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
CHUNK = 1 << 22  # elements that are summed at a time, since sums are made of copies as int64

FAKE_LOG = logging.getLogger(FakeTensorMode.__module__)

log = logging.getLogger(__name__)

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def tensors_in(value: Any) -> list[torch.Tensor]:
    """The tensors of an argument list or result, in order."""
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


class Trial:
    """One call that can be repeated: made before the call runs, asked when it has run."""

    def __init__(
        self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], device: torch.device
    ) -> None:
        self._op, self._live, self._device = op, (args, kwargs), device
        self._written = _written(op)
        memory = {_storage(t) for t in self._of(self._live, written=True)}
        self._copies = _copied_where((args, kwargs), memory)
        self._still = [t for t in tensors_in(self._live) if _storage(t) not in memory]
        self._sums = [_sum(t) for t in self._still]
        self._random_state = _random_state(device)

    def refusal(self, output: Any, known: str | None) -> str | None:
        """Why the call that returned `output` cannot be a target, or None; `known` is a reason
        that was found elsewhere. To be asked before `again`."""
        undeclared = self._restore()
        drawn = not torch.equal(self._random_state, _random_state(self._device))
        return (
            known
            or _structure(tensors_in(self._live), output, bool(self._written))
            or (undeclared and "it writes an argument that its schema does not declare")
            or (drawn and "it is random")
            or shape_from_data(self._op, (self._op,), self._live, output)
            or self._differs(output)
            or None
        )

    def again(self) -> Any:
        """Run the operator once more; what it writes is not what the model holds."""
        args, kwargs = self._copies
        return self._op(*args, **kwargs)

    def _restore(self) -> bool:
        """Whether the call wrote what it did not declare; that is copied too from now on."""
        changed = {
            _storage(tensor)
            for tensor, before in zip(self._still, self._sums, strict=True)
            if not torch.equal(before, _sum(tensor))
        }
        self._copies = _copied_where(self._copies, changed)
        return bool(changed)

    def _differs(self, output: Any) -> str | None:
        """Run it again on what it was given: the same must come out and be written."""
        expected = [*tensors_in(output), *self._of(self._live, written=True)]
        for _ in range(RERUNS):
            fresh = self._fresh() if self._written else self._copies
            try:
                found = tensors_in(self._op(*fresh[0], **fresh[1]))
            except Exception as error:  # noqa: BLE001  an operator of the user's may raise anything
                log.info("%s a second time: %s", self._op, error)
                return f"it cannot be run a second time: {type(error).__name__}"
            found += self._of(fresh, written=True)
            if len(found) != len(expected) or not all(map(_same, expected, found)):
                return "it is random"
        return None

    def _fresh(self) -> Arguments:
        return _copied_where(self._copies, {_storage(t) for t in self._of(self._copies, True)})

    def _of(self, arguments: Arguments, written: bool) -> list[torch.Tensor]:
        """The tensors among arguments that the schema says are written, or are not."""
        names = [p.name for p in parameters(self._op)]
        pairs = [*zip(names, arguments[0], strict=False), *arguments[1].items()]
        return tensors_in([v for name, v in pairs if (name in self._written) == written])


def _copied_where(arguments: Arguments, memory: set[int]) -> Arguments:
    """The arguments with copies of the tensors that lie in this memory."""
    if not memory:
        return arguments
    copies: dict[int, torch.Tensor] = {}

    def copy(tensor: torch.Tensor) -> torch.Tensor:
        if _storage(tensor) not in memory:
            return tensor
        # A tensor that is given twice stays one tensor.
        return copies.setdefault(id(tensor), copied(tensor))

    found: Arguments = pytree.tree_map_only(torch.Tensor, copy, arguments)
    return found


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _sum(tensor: torch.Tensor) -> torch.Tensor:
    """Sums over the bits of a tensor's memory, which change when the tensor does."""
    memory = flat(tensor.detach()).view(WHOLE[tensor.element_size()])
    return torch.stack([part.sum(dtype=torch.int64) for part in memory.split(CHUNK)])


def _random_state(device: torch.device) -> torch.Tensor:
    states = [torch.get_rng_state()]
    if device.type == "cuda":
        states.append(torch.cuda.get_rng_state(device))
    return torch.cat(states)


def _structure(inputs: Sequence[torch.Tensor], output: Any, writes: bool) -> str | None:
    outputs = tensors_in(output)
    if not inputs:
        return "it takes no tensor"
    if not outputs or len(outputs) != len(pytree.tree_leaves(output)):
        return "it returns something else than tensors"
    shared = {_storage(t) for t in inputs if t.numel()} & {_storage(t) for t in outputs}
    if shared and not writes:
        return "it is a view"
    return unjudged([*inputs, *outputs])


def unjudged(tensors: Sequence[torch.Tensor]) -> str | None:
    """Why there are no rules to judge such tensors by, or None."""
    if any(not t.numel() for t in tensors):
        return "it has an empty tensor"
    if len({t.device for t in tensors}) > 1:
        return "it spans several devices"
    if unruled := {t.dtype for t in tensors} - JUDGED:
        return f"there are no rules yet for {str(unruled.pop()).removeprefix('torch.')}"
    if any(_awkward(t) for t in tensors):
        return "it has a tensor that is not plain, dense and non-overlapping"
    return None


def _written(op: Any) -> frozenset[str]:
    """The arguments that the schema says are written."""
    return frozenset(p.name for p in parameters(op) if p.alias is not None)


def _awkward(tensor: torch.Tensor) -> bool:
    if tensor.layout != torch.strided or tensor.is_conj() or tensor.is_neg() or tensor.is_complex():
        return True
    expanded = [(n, s) for n, s in zip(tensor.shape, tensor.stride(), strict=True) if s]
    return torch._debug_has_internal_overlap(_kept(tensor, expanded)) == 1


def _kept(tensor: torch.Tensor, dims: Sequence[tuple[int, int]]) -> torch.Tensor:
    """The tensor without its expanded dimensions, whose overlap is harmless to read."""
    return tensor.as_strided([n for n, _ in dims], [s for _, s in dims])


def shape_from_data(
    run: Callable[..., Any], ops: Sequence[Any], live: Arguments, output: Any
) -> str | None:
    """Why the shapes of an output may depend on data, or None; `run` calls `ops`."""
    try:
        with _quietly(), FakeTensorMode(allow_non_fake_inputs=False) as mode:
            fake_args, fake_kwargs = pytree.tree_map_only(torch.Tensor, mode.from_tensor, live)
            fake = tensors_in(run(*fake_args, **fake_kwargs))
    except Exception as error:  # noqa: BLE001  no meta kernel: the operator's own tags decide
        log.info("%s under fake tensors: %s", ops, error)
        return next(filter(None, map(_by_tags, ops)), None)
    real = tensors_in(output)
    same = [(tuple(f.shape), f.dtype) for f in fake] == [(tuple(r.shape), r.dtype) for r in real]
    return None if same else "its output shape depends on data"


@contextmanager
def _quietly() -> Iterator[None]:
    """An operator without a meta kernel is an answer; torch would log it with its traceback."""
    FAKE_LOG.disabled = True
    try:
        yield
    finally:
        FAKE_LOG.disabled = False


def _by_tags(op: Any) -> str | None:
    """Tags are complete for torch's own operators only."""
    if any(tag in op.tags for tag in DYNAMIC):
        return "its output shape depends on data"
    if op.namespace != "aten":
        return "it has no fake kernel, so its output shape may depend on data"
    return None


def _same(first: torch.Tensor, second: torch.Tensor) -> bool:
    return torch.equal(_bits(first), _bits(second))


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().reshape(-1).view(torch.uint8)
