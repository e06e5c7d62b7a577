"""Which calls a kernel of the user's library is offered for, on plain records."""

from dataclasses import replace

import cast_cases
import pytest

from kernelforge_engine.calls import Argument, Region, Step, TensorSpec
from kernelforge_engine.launch.header import parse_source
from kernelforge_engine.library.likeness import serves

FLAT = cast_cases.RELU
ROWS = FLAT.replace("in0.numel", "in0.numel / in0.shape[1]")


def offered(judged, call, text=FLAT):
    return serves(parse_source(text, judged.backend).plan, judged, call)


def reshaped(call, **changes):
    """The call with its one tensor changed, in and out."""
    spec = replace(call.inputs[0], **changes)
    return replace(call, inputs=(spec,), outputs=(replace(call.outputs[0], tensor=spec),))


def with_argument(name, value, call=None):
    call = call or cast_cases.relu()
    return replace(call, arguments=(*call.arguments, Argument(name=name, value=value)))


JUDGED = cast_cases.relu((8, 16))


@pytest.mark.parametrize("shape", [(8, 16), (3, 5), (1, 16), (8, 1)])
def test_a_kernel_is_offered_at_other_sizes_of_the_same_rank(shape):
    assert offered(JUDGED, cast_cases.relu(shape))


@pytest.mark.parametrize("call", [
    cast_cases.relu((8, 16), dtype="float16"),
    cast_cases.relu((2, 8, 16)),
    cast_cases.relu((8, 16), device="cuda"),
    replace(JUDGED, operator="aten::gelu"),
    replace(JUDGED, overload="out"),
    replace(JUDGED, mutated=(0,)),
    replace(JUDGED, outputs=()),
    reshaped(JUDGED, aligned=False),
    reshaped(JUDGED, stride=(1, 8)),
    reshaped(JUDGED, stride=(32, 1)),
    reshaped(JUDGED, stride=(0, 1)),
])  # fmt: skip
def test_it_is_not_offered_where_what_it_takes_for_granted_is_otherwise(call):
    assert not offered(JUDGED, call)


def test_strides_that_were_judged_are_offered_again_at_other_sizes():
    turned, other = (reshaped(cast_cases.relu(s), stride=(1, s[0])) for s in ((8, 16), (4, 6)))
    assert offered(turned, other)
    image, another = (
        reshaped(cast_cases.relu(s), stride=(s[1] * s[2] * s[3], 1, s[3] * s[1], s[1]))
        for s in ((2, 8, 4, 4), (1, 16, 6, 5))
    )
    assert offered(image, another)


def test_an_unaligned_kernel_is_offered_for_aligned_tensors():
    assert offered(reshaped(JUDGED, aligned=False), JUDGED)


def test_what_the_plan_does_not_name_has_to_be_the_same():
    judged, other = with_argument("alpha", 1), with_argument("alpha", 2)
    named = FLAT.replace("i64:in0.numel", "i64:in0.numel * alpha")
    assert not offered(judged, other)
    assert offered(judged, other, named)
    assert not offered(judged, with_argument("alpha", None), named)
    assert not offered(judged, with_argument("beta", 2), named)


def test_an_argument_that_is_a_size_may_be_another_size():
    judged = with_argument("normalized_shape", [16])
    other = cast_cases.relu((8, 64))
    assert offered(judged, with_argument("normalized_shape", [64], other))
    assert not offered(judged, with_argument("normalized_shape", [32], other))
    assert not offered(judged, with_argument("normalized_shape", [64, 64], other))


def test_an_operand_that_is_repeated_is_another_matter():
    whole = cast_cases.relu((8, 16))
    row = TensorSpec(dtype="float32", shape=(1, 16), stride=(16, 1), device="cpu")
    judged = replace(whole, inputs=(*whole.inputs, *whole.inputs))
    assert not offered(judged, replace(whole, inputs=(*whole.inputs, row)))


def test_a_plan_that_has_no_value_for_a_call_is_not_offered():
    assert not offered(cast_cases.relu((8, 16)), cast_cases.relu((8,)), ROWS)
    sized = FLAT.replace("in0.numel", "in0.numel / (in0.shape[0] - 3)")
    assert offered(JUDGED, cast_cases.relu((4, 16)), sized)
    assert not offered(JUDGED, cast_cases.relu((3, 16)), sized)


def region(owner="package.Chain", factor=0.5, size=16, call=None):
    """A region that multiplies a relu."""
    call = call or cast_cases.relu((8, size))
    x = Argument(name="self", value={"tensor": 0})
    steps = (
        Step(operator="aten::relu", overload="", arguments=(x,), results=1),
        Step(
            operator="aten::mul",
            overload="Scalar",
            arguments=(
                Argument(name="self", value={"tensor": 1}),
                Argument(name="other", value=factor),
                Argument(name="size", value=[size]),
            ),
            results=1,
        ),
    )
    made = Region(kind="module", owner=owner, source="", steps=steps, returns=(2,))
    name = owner.rpartition(".")[2]
    return replace(call, operator=f"region::{name}", arguments=(x,), region=made)


def test_a_region_is_known_by_what_it_computes_whatever_it_is_called():
    assert offered(region(), region(owner="elsewhere.model.Other"))
    assert offered(region(), region(size=64))
    assert not offered(region(), region(factor=0.25))
    assert not offered(region(), cast_cases.relu((8, 16)))
