"""What a matcher asks about a call: its arguments, and how its tensors lie in memory."""

from dataclasses import dataclass

from kernelforge_engine.calls import ITEM_BYTES, Argument, Backend, Call, Json, TensorSpec
from kernelforge_engine.library.render import C_NAMES

# Elements that a kernel may count with 32 bits, with room to step past the end.
MAX_INDEX = (1 << 31) - (1 << 20)
# Elements below which a CUDA launch wants many blocks rather than much work for each thread.
SMALL = 1 << 20


@dataclass(frozen=True)
class Offer:
    """A candidate of the library: a complete source and the idea behind it. `origin` says where one
    of the user's own library comes from; it is empty for the built-in ones."""

    name: str
    backend: Backend
    idea: str
    text: str
    origin: str = ""


@dataclass(frozen=True)
class Site:
    """One call as the matchers see it."""

    call: Call

    @property
    def backend(self) -> Backend:
        return self.call.backend

    @property
    def cuda(self) -> bool:
        return self.call.backend == "cuda"

    @property
    def out(self) -> TensorSpec:
        return self.call.outputs[0].tensor

    def value(self, name: str) -> Json:
        """The argument of that name, None where the schema has no such argument."""
        found: list[Argument] = [a for a in self.call.arguments if a.name == name]
        return found[0].value if found else None

    def index(self, name: str) -> int | None:
        """Which input a tensor argument is, None where it is absent or a number."""
        value = self.value(name)
        index = value.get("tensor") if isinstance(value, dict) else None
        return index if isinstance(index, int) else None

    def spec(self, name: str) -> TensorSpec | None:
        """The tensor given for an argument."""
        index = self.index(name)
        return None if index is None else self.call.inputs[index]

    def buffer(self, name: str) -> str:
        """The buffer of an optional tensor. A kernel never reads one that is absent, but a launch
        needs a pointer of some kind, so that is the first input."""
        return f"in{self.index(name) or 0}"

    def real(self, name: str) -> bool:
        """Whether an argument is a plain number."""
        value = self.value(name)
        if isinstance(value, dict):
            return "float" in value
        return isinstance(value, int | float) and not isinstance(value, bool)

    def lanes(self, *dtypes: str) -> int:
        """Values in a vector of at least 16 bytes, or 1 where a tensor is not aligned for one."""
        tensors = [*self.call.inputs, self.out]
        if not all(t.aligned for t in tensors):
            return 1
        return max(16 // ITEM_BYTES[dtype] for dtype in dtypes)


def floating(*specs: TensorSpec | None) -> bool:
    """Whether all are tensors of the dtypes the kernels are written for."""
    return all(s is not None and s.dtype in C_NAMES for s in specs)


def packed(spec: TensorSpec) -> bool:
    """Whether the elements fill one run of memory, in whatever order of dimensions."""
    expected = 1
    for stride, size in sorted(_steps(spec)):
        if stride != expected:
            return False
        expected *= size
    return True


def dense(spec: TensorSpec) -> bool:
    """Whether the elements lie in row-major order; the stride of a single element says nothing."""
    return packed(spec) and [s for s, _ in _steps(spec)] == sorted(
        (s for s, _ in _steps(spec)), reverse=True
    )


def channels_last(spec: TensorSpec) -> bool:
    """Whether the elements lie in the order N, H, W, C."""
    if len(spec.shape) != 4:
        return False
    (n, c, h, w), (sn, sc, sh, sw) = spec.shape, spec.stride
    moved = TensorSpec(
        dtype=spec.dtype, shape=(n, h, w, c), stride=(sn, sh, sw, sc), device=spec.device
    )
    return dense(moved)


def same_layout(a: TensorSpec, b: TensorSpec) -> bool:
    """Whether equal positions in memory hold equal indices, without gaps."""
    return packed(a) and a.shape == b.shape and _steps(a) == _steps(b)


def _steps(spec: TensorSpec) -> list[tuple[int, int]]:
    return [(s, n) for n, s in zip(spec.shape, spec.stride, strict=True) if n > 1]


def fitting(site: Site, length: int, *dtypes: str) -> int:
    """Values in a vector where runs of `length` divide into such vectors, else 1."""
    lanes = site.lanes(*dtypes)
    return lanes if length % lanes == 0 else 1


def affine_flags(site: Site) -> dict[str, bool]:
    """Which of weight and bias a normalisation has, as constants of its kernel."""
    return {n.upper(): site.index(n) is not None for n in ("weight", "bias")}


def affine_types(site: Site, names: tuple[str, ...]) -> dict[str, str] | None:
    """T of the input and output, P of all parameters; None where the kernels know no such mix."""
    x = site.call.inputs[0]
    given = [s for s in map(site.spec, names) if s is not None]
    dtypes = {s.dtype for s in given} or {x.dtype}
    if not (floating(x, site.out, *given) and all(map(dense, given)) and len(dtypes) == 1):
        return None
    return {"T": x.dtype, "P": dtypes.pop()} if x.dtype == site.out.dtype else None
