"""Launch headers: what is accepted, what it resolves to, and how a refusal reads."""

from dataclasses import replace

import pytest

from kernelforge_engine.calls import Argument, Call, OutputSpec, TensorSpec
from kernelforge_engine.launch.expression import ExpressionError, evaluate
from kernelforge_engine.launch.header import SourceRejected, parse_source
from kernelforge_engine.launch.resolve import resolve
from kernelforge_engine.plans import ResolvedArgument

HEADER = """/* kernelforge
[let]
cols = "in0.shape[-1]"
rows = "in0.numel / cols"
[workspace.ws0]
bytes = "4 * rows"
init = "zero"
[[launch]]
kernel = "softmax_rows<float, 256>"
grid = ["rows"]
block = [256, 1, 1]
shared = "8 * next_pow2(cols)"
args = ["in0", "out0", "ws0", "i32:cols", "f32:1.0 / cols", "i64:dim"]
*/
template <class T, int N>
__global__ void softmax_rows(const T* x, T* y, float* ws, int cols, float scale, long dim) {}
"""


def spec(*shape, dtype="float32", device="cuda"):
    stride, step = [], 1
    for n in reversed(shape):
        stride.insert(0, step)
        step *= n
    return TensorSpec(dtype=dtype, shape=shape, stride=tuple(stride), device=device)


def softmax(*shape):
    tensor = spec(*shape)
    return Call(
        operator="aten::softmax",
        overload="int",
        words=(1,),
        arguments=(
            Argument(name="self", value={"tensor": 0}),
            Argument(name="dim", value=-1),
            Argument(name="dtype", value=None),
        ),
        inputs=(tensor,),
        outputs=(OutputSpec(tensor=tensor),),
    )


def test_a_header_resolves_to_numbers():
    plan = resolve(parse_source(HEADER, "cuda").plan, softmax(4, 5, 6))
    (launch,) = plan.launches
    assert [(b.role, b.bytes, b.zero) for b in plan.buffers] == [
        ("input", 480, False),
        ("output", 480, False),
        ("workspace", 80, True),
    ]
    assert (launch.grid, launch.block, launch.shared) == ((20, 1, 1), (256, 1, 1), 64)
    assert launch.args[3:] == (
        ResolvedArgument(kind="i32", value=6),
        ResolvedArgument(kind="f32", value=1 / 6),
        ResolvedArgument(kind="i64", value=-1),
    )


def test_the_same_header_serves_another_shape():
    plan = resolve(parse_source(HEADER, "cuda").plan, softmax(2, 33))
    assert plan.launches[0].grid == (2, 1, 1)
    assert plan.launches[0].shared == 512


def test_an_output_that_aliases_an_input_has_no_buffer_of_its_own():
    call = softmax(4, 4)
    call = Call(**{**vars(call), "outputs": (OutputSpec(tensor=call.inputs[0], alias=0),)})
    source = (
        HEADER.replace('"ws0", ', "")
        .replace("[workspace.ws0]", "")
        .replace('bytes = "4 * rows"\ninit = "zero"\n', "")
    )
    plan = resolve(parse_source(source, "cuda").plan, call)
    assert len(plan.buffers) == 1
    assert [a.value for a in plan.launches[0].args[:2]] == [0, 0]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7 / 2", 3),
        ("-7 / 2", -4),
        ("7.0 / 2", 3.5),
        ("ceil_div(7, 2)", 4),
        ("next_pow2(5) + next_pow2(8) + next_pow2(1)", 17),
        ("min(3, x.shape[-1], 9) % 2", 1),
        ("x.stride[0] * (1 + 1)", 6),
        ("sizes[1]", 8),
    ],
)
def test_expressions_have_the_documented_values(text, value):
    assert evaluate(text, {"x": spec(2, 3), "sizes": [4, 8]}) == value


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "x.device",
        "x",
        "(lambda: 1)()",
        "1 if 1 else 2",
        "2 ** 99",
        "1 / 0",
        "x.shape[9]",
        "unknown",
        "9999999999 * 9999999999",
        "True",
        "[1][0]",
        "",
        "(" * 300,
    ],
)
def test_nothing_outside_the_grammar_is_evaluated(text):
    with pytest.raises(ExpressionError):
        evaluate(text, {"x": spec(2, 3)})


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("/* kernelforge", "/* other", "must begin with"),
        ("[let]", "[lett]", "unknown key lett"),
        ('init = "zero"', 'init = "one"', "workspace.ws0.init"),
        ('"ws0", ', '"ws1", ', "no buffer ws1"),
        ('grid = ["rows"]', 'grid = ["rows - rows"]', "must be an integer from 1"),
        ("block = [256, 1, 1]", "block = [1024, 2, 1]", "more than 1024 threads"),
        ("i32:cols", "i32:cols * 9999999999", "does not fit i32"),
        ("i32:cols", "u8:cols", "neither a buffer"),
        ('rows = "in0.numel / cols"', 'dim = "1"\nrows = "1"', "hides the argument dim"),
        ("softmax_rows<float, 256>", "softmax; rm", "not a function name"),
        ("block = [256, 1, 1]\n", "", "needs grid and block"),
    ],
)
def test_a_refusal_names_the_field(old, new, words):
    with pytest.raises(SourceRejected, match=words):
        resolve(parse_source(HEADER.replace(old, new), "cuda").plan, softmax(4, 6))


@pytest.mark.parametrize(
    ("value", "argument", "words"),
    [
        ({"float": "-inf"}, "f32:value", "-inf, which is not finite.*write INFINITY or NAN"),
        ({"float": "nan"}, "f64:value * 2", "nan, which is not finite.*write INFINITY or NAN"),
        (1e300, "f32:value", "does not fit f32"),
        ({"float": "nan"}, "i32:next_pow2(value)", "next_pow2 takes a finite number"),
        (1 << 63, "f64:value", "too large"),
    ],
)
def test_a_number_that_cannot_be_an_argument_says_why(value, argument, words):
    call = softmax(4, 6)
    call = replace(call, arguments=(*call.arguments, Argument(name="value", value=value)))
    with pytest.raises(SourceRejected, match=words):
        resolve(parse_source(HEADER.replace("i64:dim", argument), "cuda").plan, call)


def test_an_infinite_argument_may_take_part_in_a_finite_one():
    call = softmax(4, 6)
    value = Argument(name="value", value={"float": "inf"})
    call = replace(call, arguments=(*call.arguments, value))
    source = HEADER.replace("i64:dim", "f32:min(value, 3.0)").replace("f32:1.0 / cols", "f64:1e30")
    (launch,) = resolve(parse_source(source, "cuda").plan, call).launches
    assert [a.value for a in launch.args[4:]] == [1e30, 3.0]


def test_the_cpu_backend_has_no_grid():
    with pytest.raises(SourceRejected, match="CUDA only"):
        parse_source(HEADER, "cpu")
