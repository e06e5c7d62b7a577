"""Elementwise operators: one formula each, the same on both backends."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kernelforge_engine.library.broadcast import Broadcast, collapse
from kernelforge_engine.library.match import (
    MAX_INDEX,
    SMALL,
    Offer,
    Site,
    dense,
    floating,
    same_layout,
)
from kernelforge_engine.library.render import render


@dataclass(frozen=True)
class Formula:
    """An expression in x, or in a and b, and the header expressions of its scalars s and t."""

    text: str
    scalars: tuple[str, ...] = ()
    cheap: bool = True

    def fields(self) -> dict[str, str]:
        """What a kernel file needs to pass the scalars on."""
        names = "st"[: len(self.scalars)]
        return {
            "expression": self.text,
            "args": "".join(f', "f32:{s}"' for s in self.scalars),
            "params": "".join(f", float {n}" for n in names),
            "values": "".join(f", {n}" for n in names),
        }


def _costly(text: str) -> Formula:
    return Formula(text, cheap=False)


RELU6 = "clamp_(x, 0.0f, 6.0f)"
HARDSIGMOID = "(clamp_(x + 3.0f, 0.0f, 6.0f) * 0.166666667f)"
SIGMOID = "quotient(splat(1.0f), 1.0f + exp_(-x))"

UNARY: dict[str, Formula] = {
    "aten::relu": Formula("select(x < 0.0f, splat(0.0f), x)"),
    "aten::relu6": Formula(RELU6),
    "aten::clone": Formula("x"),
    "aten::neg": Formula("-x"),
    "aten::abs": Formula("abs_(x)"),
    "aten::reciprocal": Formula("1.0f / x"),
    "aten::sqrt": Formula("sqrt_(x)"),
    "aten::rsqrt": Formula("1.0f / sqrt_(x)"),
    "aten::exp": _costly("exp_(x)"),
    "aten::tanh": _costly("tanh_(x)"),
    "aten::sigmoid": _costly(SIGMOID),
    "aten::silu": _costly("quotient(x, 1.0f + exp_(-x))"),
    "aten::hardsigmoid": Formula(HARDSIGMOID),
    "aten::hardswish": Formula(f"x * {HARDSIGMOID}"),
    "aten::hardtanh": Formula("clamp_(x, s, t)", ("min_val", "max_val")),
    "aten::leaky_relu": Formula("select(x > 0.0f, x, x * s)", ("negative_slope",)),
    "aten::rsub.Scalar": Formula("s - t * x", ("other", "alpha")),
    "aten::add.Scalar": Formula("x + s", ("other * alpha",)),
    "aten::sub.Scalar": Formula("x - s", ("other * alpha",)),
    "aten::mul.Scalar": Formula("x * s", ("other",)),
    "aten::div.Scalar": Formula("x / s", ("other",)),
}
POWERS: dict[float, str] = {2: "x * x", 3: "x * x * x", 0.5: "sqrt_(x)", -1: "1.0f / x"}
GELUS: dict[str, tuple[tuple[str, str], ...]] = {
    "cpu": (
        ("table", "gelu_table_(x)"),
        ("exponential", "gelu_(x)"),
    ),
    "cuda": (("exponential", "gelu_(x)"),),
}
BINARY: dict[str, Formula] = {
    "aten::add.Tensor": Formula("a + s * b", ("alpha",)),
    "aten::sub.Tensor": Formula("a - s * b", ("alpha",)),
    "aten::mul.Tensor": Formula("a * b"),
    "aten::div.Tensor": Formula("a / b"),
}
CUDA_SHAPES: dict[str, tuple[int, str, str]] = {
    "deep": (4, "tiles", "16-byte loads, four vectors in flight for each thread"),
    "single": (1, "tiles", "16-byte loads, one vector for each thread, as many blocks as possible"),
    "persistent": (2, "min(tiles, 1056)", "a fixed grid walks the tensor, two vectors in flight"),
}


def unary(site: Site) -> Iterator[Offer]:
    """Operators of one tensor, in place or not."""
    base = _base(site)
    yield from _unary(site, UNARY[base], base.removeprefix("aten::"))


def gelu(site: Site) -> Iterator[Offer]:
    """Both forms of gelu."""
    if site.value("approximate") == "tanh":
        yield from _unary(site, _costly("gelu_tanh_(x)"), "gelu_tanh")
    else:
        for name, text in GELUS[site.backend]:
            yield from _unary(site, _costly(text), f"gelu_{name}")


def power(site: Site) -> Iterator[Offer]:
    """A tensor to one of the exponents that need no logarithm."""
    exponent = site.value("exponent")
    if site.real("exponent") and isinstance(exponent, int | float) and exponent in POWERS:
        yield from _unary(site, Formula(POWERS[exponent]), "power")


def cast(site: Site) -> Iterator[Offer]:
    """A conversion between floating dtypes that keeps the layout."""
    yield from _unary(site, Formula("x"), "cast", converts=True)


def binary(site: Site) -> Iterator[Offer]:
    """Two tensors of one shape, a tensor and a number, or a tensor and one that is broadcast."""
    base = _base(site)
    name = base.removeprefix("aten::").removesuffix(".Tensor")
    if site.real("other"):
        yield from _unary(site, UNARY[base.replace(".Tensor", ".Scalar")], f"{name}_scalar")
    elif floating(site.spec("other"), site.spec("self")) and _writes(site, site.index("self")):
        a, b = site.call.inputs[:2]
        if a.dtype == b.dtype == site.out.dtype:
            same = same_layout(a, site.out) and same_layout(b, site.out)
            yield from (_binary if same else _broadcast)(site, BINARY[base], name)


def _base(site: Site) -> str:
    """The operator's name with its overload, without the underscore of an in-place one."""
    overload = f".{site.call.overload}" if site.call.overload else ""
    return site.call.operator.removesuffix("_") + overload


def _writes(site: Site, target: int | None) -> bool:
    """Whether the one output is fresh, or the input that an in-place operator names."""
    alias = site.call.outputs[0].alias
    in_place = site.call.operator.endswith("_")
    return len(site.call.outputs) == 1 and alias == (target if in_place else None)


def _unary(site: Site, formula: Formula, name: str, *, converts: bool = False) -> Iterator[Offer]:
    x = site.call.inputs[0]
    dtypes = x.dtype == site.out.dtype or converts
    if not (len(site.call.inputs) == 1 and floating(x, site.out) and dtypes):
        return
    if not (_writes(site, 0) and same_layout(x, site.out)):
        return
    types = {"T": x.dtype, "U": site.out.dtype}
    if site.cuda:
        yield from _flat(site, "unary", name, types, formula)
    else:
        serial = 4 if formula.cheap else 1
        wide = {} if formula.cheap else {"narrow": ""}
        fields = {"serial": serial, **wide, **formula.fields()}
        text = render("cpu", "unary", types, fields)
        yield Offer(name, "cpu", "chunks of 8192 elements over the threads, whole vectors", text)


def _flat(
    site: Site, kernel: str, name: str, types: dict[str, str], formula: Formula
) -> Iterator[Offer]:
    lanes = site.lanes(*types.values())
    order = ("single", "deep", "persistent") if site.out.numel < SMALL else (*CUDA_SHAPES,)
    flags = {"FAST": site.out.dtype != "float32"}
    for shape in order:
        deep, grid, idea = CUDA_SHAPES[shape]
        sizes = {"vec": lanes, "deep": deep, "tile": 256 * lanes * deep, "grid": grid}
        text = render("cuda", kernel, types, {**sizes, **formula.fields()}, flags)
        yield Offer(f"{name}_{shape}", "cuda", idea, text)


def _binary(site: Site, formula: Formula, name: str) -> Iterator[Offer]:
    types = {"T": site.out.dtype}
    if site.cuda:
        yield from _flat(site, "binary", name, types, formula)
    else:
        text = render("cpu", "binary", types, formula.fields())
        yield Offer(name, "cpu", "chunks of 8192 elements over the threads, whole vectors", text)


def _broadcast(site: Site, formula: Formula, name: str) -> Iterator[Offer]:
    found = collapse(site)
    if found is None or not dense(site.out) or site.out.numel >= MAX_INDEX:
        return
    variants = (("deep", 4), ("single", 1)) if site.cuda else (("rows", 1),)
    for variant, deep in variants if site.out.numel >= SMALL else variants[::-1]:
        yield Offer(
            f"{name}_broadcast_{variant}",
            site.backend,
            f"the tensor as three axes, some of which the other operand repeats along: {variant}",
            _broadcast_text(site, formula, found, deep),
        )


def _broadcast_text(site: Site, formula: Formula, found: Broadcast, deep: int) -> str:
    lanes = site.lanes(site.out.dtype)
    names = formula.fields()
    operands = "small, big" if found.swapped else "big, small"
    fields: dict[str, object] = {
        **names,
        "call": f"apply({operands}{names['values']})",
        "pattern": found.pattern,
        "big": f"in{int(found.swapped)}",
        "small": f"in{int(not found.swapped)}",
        **dict(zip(("outer", "middle", "inner"), found.sizes, strict=True)),
    }
    if site.cuda:
        fields |= {"vec": lanes, "deep": deep, "tile": 256 * lanes * deep}
    flags = dict(zip(("OUTER", "MIDDLE", "INNER"), found.present, strict=True))
    types = {"T": site.out.dtype}
    return render(site.backend, "broadcast", types, fields, flags)


FAMILIES: dict[str, Callable[[Site], Iterator[Offer]]] = {
    **dict.fromkeys(UNARY, unary),
    **dict.fromkeys(BINARY, binary),
    "aten::gelu": gelu,
    "aten::pow.Tensor_Scalar": power,
    "aten::to.dtype": cast,
    "aten::_to_copy": cast,
}
