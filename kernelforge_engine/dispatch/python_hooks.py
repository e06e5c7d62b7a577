"""A kernel in Python in the place of one operator's, with the one that was there behind it."""

import threading
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch._C import DispatchKey, DispatchKeySet
from torch._C import _dispatch_has_kernel_for_dispatch_key as has_kernel
from torch._C import _dispatch_tls_is_dispatch_key_excluded as is_excluded
from torch.utils import _pytree as pytree

from kernelforge_engine.dispatch.encode import (
    calls_others,
    overload_of,
    parameters,
    schema,
    schema_values,
)
from kernelforge_engine.dispatch.python_calls import Table, Variant, Words, plain_keys, records
from kernelforge_engine.dispatch.python_hits import Failed, Hit, difference, unseen
from kernelforge_engine.errors import NotLaunched

AUTOCAST = {False: DispatchKey.AutocastCPU, True: DispatchKey.AutocastCUDA}
NUMBERS = (bool, int, float, complex)


class Shadow:
    """Which hits are compared with eager: one in `every`, none where that is 0."""

    every: ClassVar[int] = 0
    hits: ClassVar[int] = 0
    here: ClassVar[threading.local] = threading.local()

    @classmethod
    def due(cls) -> bool:
        """Whether this hit is one; the caller holds the lock of the counts."""
        if not cls.every:
            return False
        cls.hits += 1
        return (cls.hits - 1) % cls.every == 0

    @classmethod
    def comparing(cls) -> bool:
        """Whether this thread is comparing: what runs then is eager's own."""
        return getattr(cls.here, "comparing", False)


class Counted:
    """What serves calls, and counts what it did not serve by reason."""

    # In the order of `Reason` in native/hook.h.
    REASONS = ("key_set", "unsupported_argument", "guard", "autograd", "overlap", "device")
    lock = threading.Lock()

    def __init__(self) -> None:
        self.misses = [0] * len(self.REASONS)

    def miss(self, reason: str) -> int:
        """Count a call that goes to eager; the number of its reason."""
        number = self.REASONS.index(reason)
        with self.lock:
            self.misses[number] += 1
        return number

    def hit(self, variant: Variant, words: Words, name: str) -> Hit:
        """Serve a call.

        Raises:
            NotLaunched: the driver refused a launch.
        """
        with self.lock:
            variant.hits += 1
        hit = Hit(variant, words.tensors, words.placed)
        try:
            hit.launch()
        except Failed as error:
            raise NotLaunched(name=name, why=str(error)) from error
        return hit


class Hook(Counted):
    """The kernels that stand in for one (operator, device), and its variants.

    A composite operator has no kernel at the backend's key: giving it one would take away its
    decomposition above, so it is hooked at the autograd key too, and there first, so that no call
    in between goes without its derivative.
    """

    def __init__(self, name: str, overload: str, cuda: bool) -> None:
        super().__init__()
        self.name = f"{name}.{overload}".rstrip(".")
        self._op = overload_of(name, overload)
        self._returns = schema(self._op).returns
        self._numbers = [
            i
            for i, p in enumerate(parameters(self._op))
            if p.kind in ("Tensor", "Optional[Tensor]")
        ]
        key, self._autocast = ("CUDA" if cuda else "CPU"), AUTOCAST[cuda]
        implicit = has_kernel(self.name, "CompositeImplicitAutograd")
        self._decomposes = calls_others(self.name)
        self._counts_writes = not has_kernel(self.name, "ADInplaceOrView")
        both = implicit and not has_kernel(self.name, key)
        keys = [f"Autograd{key}", key] if both else [key]
        self._previous = {k: torch.library.get_kernel(self.name, k) for k in keys}
        self._table = Table()
        library: Any = torch.library.Library
        self._library = library(self._op.namespace, "IMPL")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # replacing a kernel is the point here
            for k in keys:
                self._place(k)
        # Kept for ever: another thread may be inside one when it is taken out.
        self._ours = [torch.library.get_kernel(self.name, k) for k in keys]

    def install(self, variant: Variant) -> None:
        """Serve calls with a variant.

        Raises:
            RuntimeError: the operator returns something else here.
        """
        for i, entry in enumerate(self._returns):
            if str(entry.type).startswith("List["):
                variant.list_return = i
        if variant.list_return < 0 and len(self._returns) != len(variant.outputs):
            raise RuntimeError(f"the operator returns {len(self._returns)} tensors here")  # noqa: EM102
        self._table.insert(variant)

    def release(self) -> None:
        """Restore the kernels that were there before."""
        self._library._destroy()

    def _place(self, key: str) -> None:
        previous, autograd = self._previous[key], key.startswith("Autograd")

        def kernel(keys: DispatchKeySet, *args: Any, **kwargs: Any) -> Any:
            if not Shadow.comparing():
                words = Words()
                values = schema_values(self._op, args, kwargs)
                reason, variant = self._decide(keys, values, autograd, words)
                if variant is not None:
                    return self._run(variant, words, (previous, keys, args, kwargs))
                self.miss(reason)
            return previous.call_boxed(keys, *self._with_tensors(args), **kwargs)

        local = self.name.partition("::")[2]
        self._library.impl(local, kernel, key, with_keyset=True, allow_override=True)

    def _decide(
        self, keys: DispatchKeySet, values: Sequence[Any], autograd: bool, words: Words
    ) -> tuple[str, Variant | None]:
        """The variant that serves a call, or why none does."""
        if not plain_keys(keys) or (self._decomposes and not is_excluded(self._autocast)):
            return "key_set", None
        if reason := self._unlike(values, words):
            return reason, None
        variant = next(iter(self._table.find(words)), None)
        if variant is None:
            return "guard", None
        if autograd and records(words.tensors):
            return "autograd", None
        if variant.overlaps(words.tensors):
            return "overlap", None
        return ("", variant) if variant.loaded(words.placed) else ("device", None)

    def _unlike(self, values: Sequence[Any], words: Words) -> str:
        """Why no variant can be meant, as far as the words can say that before the last one."""
        held = False
        for value in values:
            if not words.add(value):
                return "unsupported_argument"
            if not held and words.head:
                if not self._table.may_hold(words):
                    return "guard"
                held = True
        return ""

    def _run(
        self,
        variant: Variant,
        words: Words,
        eager: tuple[Any, DispatchKeySet, Sequence[Any], Mapping[str, Any]],
    ) -> Any:
        hit = self.hit(variant, words, self.name)
        with self.lock:
            due = Shadow.due()
        if due and not variant.writes and not hit.is_recorded:
            self._compare(variant, hit, *eager)
        if self._counts_writes:
            hit.bump_versions()
        return hit.returned(len(self._returns))

    def _compare(
        self,
        variant: Variant,
        hit: Hit,
        previous: Any,
        keys: DispatchKeySet,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> None:
        """Run a call by eager too, and note how far it is; infinitely where eager refuses it."""
        Shadow.here.comparing = True
        try:
            with torch.no_grad():
                eager = previous.call_boxed(keys, *self._with_tensors(args), **kwargs)
                found = difference(hit.outputs, pytree.tree_leaves(eager))
        except RuntimeError:
            found = float("inf")
        finally:
            Shadow.here.comparing = False
        with self.lock:
            variant.compared += 1
            variant.worst = max(variant.worst, found)

    def _with_tensors(self, args: Sequence[Any]) -> Sequence[Any]:
        """The arguments with tensors for numbers: `x + 1` reaches a kernel in Python with the
        number, where the kernel behind it takes a tensor made of that."""
        if not any(i < len(args) and type(args[i]) in NUMBERS for i in self._numbers):
            return args
        return [
            wrapped(value) if i in self._numbers and type(value) in NUMBERS else value
            for i, value in enumerate(args)
        ]


@cache
def marks() -> dict[type, Tensor]:
    """A tensor of each kind of number, marked as one that was made of a number; Python has no other
    way to get one than to be shown the operand that a derivative needs. To be asked first before
    there are hooks, which could be on the way."""
    with torch.inference_mode(False), torch.enable_grad():
        one = torch.ones((), device="cpu", requires_grad=True)
        made = [torch.mul(one, number) for number in (True, 1, 1.0, 1j)]
    return {
        kind: function.grad_fn._saved_other.detach()  # type: ignore[union-attr]
        for kind, function in zip(NUMBERS, made, strict=True)
    }


def wrapped(number: Any) -> Tensor:
    """A number as the tensor that torch makes of it, which takes no part in promoting types."""
    mark = marks()[type(number)]
    with unseen():
        held = torch.tensor(number, dtype=mark.dtype, device="cpu")
        made = mark.detach()  # keeps the mark
        made.set_(held.untyped_storage(), 0, (), ())
    return made
