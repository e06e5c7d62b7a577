"""The models of the zoo, and kernels that stand in for eager and give its very bits."""

import ctypes
import re
import threading
from collections import Counter
from pathlib import Path

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kernelforge_engine.calls import Call
from kernelforge_engine.dispatch.encode import parameters
from kernelforge_engine.dispatch.guard import Unguardable, arguments_of, describe, operator_of
from kernelforge_engine.dispatch.python_hooks import marks, wrapped
from kernelforge_engine.dispatch.shim import LoadedCode
from kernelforge_engine.launch.resolve import buffer_sizes
from kernelforge_engine.plans import ResolvedArgument, ResolvedLaunch, ResolvedPlan
from kernelforge_engine.pool.orders import ModelOrder
from kernelforge_engine.worker.below import below_autograd
from kernelforge_engine.worker.eligibility import shape_from_data

AREAS = sorted(Path(__file__).parent.parent.joinpath("zoo").glob("*.py"))
ZOO = {
    f"{file.stem}-{name}": (file, name)
    for file in AREAS
    for name in re.findall(r"^def make_(\w+)", file.read_text(), re.MULTILINE)
}
HostKernel = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p))
marks()  # before anything is hooked
CPU = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)


def order_of(name, device="cpu"):
    """How a model of the zoo is loaded, by its name in ZOO."""
    file, model = ZOO[name]
    return ModelOrder(model=f"{file}:make_{model}", inputs=(f"inputs_{model}",), device=device)


def flat(out):
    return [out] if isinstance(out, torch.Tensor) else list(out)


def memory(tensor):
    """Every byte from the first element to the last."""
    span = 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    return ctypes.string_at(tensor.data_ptr(), span * tensor.element_size())


def same(left, right):
    """Whether two lists of tensors have the same layouts and the same bits."""
    facts = [[(t.dtype, t.shape, t.stride()) for t in side] for side in (left, right)]
    bits = [[memory(t) for t in side] for side in (left, right)]
    return len(left) > 0 and facts[0] == facts[1] and bits[0] == bits[1]


class Seen(TorchDispatchMode):
    """Counts the calls of a run that a guard covers, as the shim sees them."""

    def __init__(self):
        super().__init__()
        self.calls: dict[tuple[str, tuple[int, ...]], Call] = {}
        self.counts = Counter()
        self.refused = set()

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        out = op(*args, **kwargs)
        try:
            call = describe(op, args, kwargs, out)
        except Unguardable:
            return out
        key = call.name, call.words
        if key not in self.counts and shape_from_data(op, (op,), (args, kwargs), out):
            self.refused.add(key)
        if key not in self.refused:
            self.calls[key] = call
            self.counts[key] += 1
            self.returned(key, call, out)
        return out

    def returned(self, key, call, out):
        """For those who want more than the call."""


def seen(run, mode=None):
    """The calls of a run, at the level of the shim."""
    mode = mode or Seen()
    with torch.no_grad(), below_autograd(), mode:
        run()
    return mode


class Echo:
    """A kernel that calls eager's own on the memory it is given, whatever that holds.

    Eager may call operators inside for which there are echoes too: `nested` counts those hits.
    """

    here = threading.local()
    lock = threading.Lock()

    def __init__(self, call: Call):
        self.call, self.nested = call, 0
        self._op = operator_of(call)
        self._eager = torch.library.get_kernel(self._op, "CPU")
        self._function = HostKernel(self._run)
        buffers = tuple(buffer_sizes(call))
        self._outputs = [i for i, b in enumerate(buffers) if b.role == "output"]
        launch = ResolvedLaunch(
            kernel="echo",
            args=tuple(ResolvedArgument(kind="buffer", value=i) for i in range(len(buffers))),
            grid=(1, 1, 1),
            block=(1, 1, 1),
            shared=0,
        )
        self.plan = ResolvedPlan(buffers=buffers, launches=(launch,))
        self.address = ctypes.cast(self._function, ctypes.c_void_p).value
        self.code = LoadedCode(functions={"0": {0: self.address}})

    def _run(self, args):
        depth = getattr(self.here, "depth", 0)
        if depth:
            with self.lock:
                self.nested += 1
        self.here.depth = depth + 1
        try:
            self._echo(args)
        finally:
            self.here.depth = depth

    def _echo(self, args):
        count = len(self.call.inputs) + len(self._outputs)
        places = [ctypes.cast(args[i], ctypes.POINTER(ctypes.c_void_p))[0] for i in range(count)]
        inputs = [at(place, spec) for place, spec in zip(places, self.call.inputs, strict=False)]
        _, values, named = arguments_of(self.call, inputs)
        kinds = [p.kind for p in parameters(self._op)]
        values = [
            wrapped(v) if kind == "Tensor" and isinstance(v, int | float) else v
            for v, kind in zip(values, kinds, strict=False)
        ]
        with torch.no_grad():
            results = flat(self._eager.call_boxed(CPU, *values, **named))
        leaves = torch.utils._pytree.tree_leaves(results)
        fresh = [
            (tensor, output.tensor)
            for tensor, output in zip(leaves, self.call.outputs, strict=True)
            if output.alias is None
        ]
        for i, (tensor, spec) in zip(self._outputs, fresh, strict=True):
            assert tensor.stride() == spec.stride
            ctypes.memmove(places[i], tensor.data_ptr(), spec.extent_bytes)


def at(place, spec):
    """The tensor of a layout that lies at an address."""
    dtype = getattr(torch, spec.dtype)
    if not spec.extent:
        return torch.empty_strided(spec.shape, spec.stride, dtype=dtype)
    room = (ctypes.c_char * spec.extent_bytes).from_address(place)
    return torch.frombuffer(room, dtype=dtype).as_strided(spec.shape, spec.stride)
