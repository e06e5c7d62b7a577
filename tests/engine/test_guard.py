"""Guard words and call records on their own; tests/engine/test_shim.py holds them against C++."""

import struct

import pytest
import torch

from kernelforge_engine.calls import Argument, Call, TensorSpec
from kernelforge_engine.cast.words import NotAnArgument, call_words, words_of
from kernelforge_engine.dispatch.guard import (
    Unguardable,
    arguments_of,
    describe,
    schema_values,
    words,
)

aten = torch.ops.aten
FLOAT = 6
ALIGNED = 1 << 40


def call_of(op, *args, **kwargs):
    return describe(op, args, kwargs, op(*args, **kwargs))


def test_words_of_a_tensor_are_its_header_sizes_and_strides():
    x = torch.zeros(2, 3, 4).transpose(0, 2)
    found, tensors = words([x])
    assert found == (2 | FLOAT << 8 | 3 << 16 | ALIGNED, 4, 1, 3, 4, 2, 12)
    assert tensors[0] is x
    assert words([torch.zeros(9)[1:]])[0] == (2 | FLOAT << 8 | 1 << 16, 8, 1)
    assert words([torch.zeros(1, 5)]) != words([torch.zeros(5, 1).t()])


def test_words_of_other_values():
    half = struct.unpack("<Q", struct.pack("<d", 0.5))[0]
    assert words([None, -1, 0.5, True])[0] == (1, 3, (1 << 64) - 1, 4, half, 5, 1)
    assert words([[1, 2]])[0] == (7 | 2 << 8, 3, 1, 3, 2)
    assert words(["tanh"])[0] == (6 | 4 << 8, int.from_bytes(b"tanh", "little"))
    assert words(["a longer text"])[0][0] == 6 | 13 << 8
    assert len(words(["a longer text"])[0]) == 3
    enums = [torch.bfloat16, torch.channels_last, torch.strided]
    assert words(enums)[0] == (3, 15, 3, 2, 3, 0)


def test_equal_numbers_of_different_kinds_differ():
    found = [words([v])[0] for v in (1, 1.0, True, "1", [1], None, 0.0, -0.0)]
    assert len(set(found)) == len(found)


def test_schema_values_fill_and_normalise():
    x = torch.zeros(1, 2, 4, 4)
    w = torch.zeros(3, 2, 1, 1)
    assert schema_values(aten.conv2d.default, (x, w), {"padding": 1}) == [
        x, w, None, [1, 1], [1, 1], [1, 1], 1,
    ]  # fmt: skip
    layer = schema_values(aten.layer_norm.default, (x, (4,)), {"eps": 1})
    assert layer[1:] == [[4], None, None, 1.0, True]
    assert type(layer[4]) is float
    memory = schema_values(aten.contiguous.default, (x,), {})[1]
    assert memory == torch.contiguous_format
    with pytest.raises(Unguardable, match="missing"):
        schema_values(aten.relu.default, (), {})


def test_spellings_of_one_call_have_one_key():
    x, w = torch.zeros(1, 2, 4, 4), torch.zeros(3, 2, 1, 1)
    op = aten.conv2d.default
    short = words(schema_values(op, (x, w), {}))[0]
    long = words(schema_values(op, (x, w, None), {"stride": 1, "groups": 1}))[0]
    assert short == long


def test_describe_records_aliases_and_writes():
    x, y, z = torch.zeros(4), torch.ones(4), torch.zeros(4)
    fresh = call_of(aten.add.Tensor, x, y, alpha=2)
    assert (fresh.operator, fresh.overload, fresh.name) == (
        "aten::add",
        "Tensor",
        "aten::add.Tensor",
    )
    assert fresh.mutated == ()
    assert [o.alias for o in fresh.outputs] == [None]
    assert [a.value for a in fresh.arguments] == [{"tensor": 0}, {"tensor": 1}, 2]
    in_place = call_of(aten.add_.Tensor, x, y)
    assert (in_place.mutated, in_place.outputs[0].alias) == ((0,), 0)
    out = call_of(aten.add.out, x, y, out=z)
    assert (out.mutated, out.outputs[0].alias) == ((2,), 2)
    pair = call_of(
        aten.max.dim_max, x, 0, max=torch.zeros(()), max_values=torch.zeros((), dtype=int)
    )
    assert [o.alias for o in pair.outputs] == [1, 2]


def test_words_follow_from_the_record():
    call = call_of(aten.cat.default, [torch.zeros(2, 3), torch.zeros(1, 3)])
    assert call_words(call) == call.words
    assert call.arguments[0].value == [{"tensor": 0}, {"tensor": 1}]
    infinite = call_of(aten.clamp.default, torch.zeros(3), float("-inf"), None)
    assert infinite.arguments[1].value == {"float": "-inf"}
    assert call_words(infinite) == infinite.words
    assert arguments_of(infinite, [torch.zeros(3)])[1][1:] == [float("-inf"), None]


@pytest.mark.parametrize("value", [
    {"tensor": 1}, {"tensor": -1}, {"tensor": "0"}, {"dtype": "float99"}, {"float": "1.0"},
    {"other": 1}, {}, {"tensor": 0, "dtype": "bool"},
])  # fmt: skip
def test_malformed_arguments_have_no_words(value):
    spec = TensorSpec(dtype="float32", shape=(1,), stride=(1,), device="cpu")
    with pytest.raises(NotAnArgument):
        words_of([value], [spec])


def test_inputs_are_named_once_and_in_order():
    call = call_of(aten.add.Tensor, torch.zeros(3), torch.zeros(3))
    swapped = (
        Argument(name="self", value={"tensor": 1}),
        Argument(name="other", value={"tensor": 0}),
    )
    doubled = (Argument(name="self", value={"tensor": 0}),) * 2
    for arguments in (swapped, doubled, ()):
        changed = Call(**{**vars(call), "arguments": arguments})
        with pytest.raises(NotAnArgument):
            call_words(changed)


class Subclass(torch.Tensor):
    pass


COMPLEX = torch.zeros(2, dtype=torch.cfloat)
REFUSED = {
    "generator": torch.Generator(),
    "complex number": 1j,
    "device": torch.device("cpu"),
    "object": object(),
    "wide integer": 1 << 70,
    "complex": COMPLEX,
    "sparse": torch.zeros(2, 2).to_sparse(),
    "meta": torch.zeros(2, device="meta"),
    "subclass": torch.zeros(2).as_subclass(Subclass),
    "negative view": COMPLEX.conj().imag,
}


@pytest.mark.parametrize("name", REFUSED)
def test_values_without_a_guard(name):
    with pytest.raises(Unguardable):
        words([REFUSED[name]])


def test_wrapped_and_fake_tensors_have_no_guard():
    with torch._subclasses.FakeTensorMode() as mode, pytest.raises(Unguardable):
        words([mode.from_tensor(torch.zeros(2))])
    seen = []

    def inside(x):
        with pytest.raises(Unguardable):
            words([x])
        seen.append(True)
        return x

    torch.vmap(inside)(torch.zeros(2, 3))
    torch.func.grad(lambda x: inside(x).sum())(torch.zeros(3))
    assert seen == [True, True]


@pytest.mark.parametrize(("op", "args", "why"), [
    (aten.view.default, (torch.zeros(4), [2, 2]), "is a view"),
    (aten.contiguous.default, (torch.zeros(4),), "is a view"),
    (aten.to.dtype, (torch.zeros(4), torch.float32), "is a view"),
    (aten.chunk.default, (torch.zeros(4), 2), "is a view"),
    (aten.transpose_.default, (torch.zeros(2, 3), 0, 1), "metadata"),
    (aten.zeros.default, ([3],), "no tensor goes in"),
    (aten.item.default, (torch.zeros(()),), "else than tensors"),
    (aten._foreach_add_.Scalar, ([torch.zeros(2)], 1.0), "no tensor comes out"),
    (aten.complex.default, (torch.zeros(2), torch.zeros(2)), "complex"),
])  # fmt: skip
def test_calls_that_are_no_target(op, args, why):
    with pytest.raises(Unguardable, match=why):
        call_of(op, *args)


def test_writes_into_shared_memory_are_refused():
    x = torch.zeros(8)
    with pytest.raises(Unguardable, match="overlaps"):
        describe(aten.add_.Tensor, (x[:5], x[3:]), {}, x[:5])
    spread = x[:1].expand(4)
    with pytest.raises(Unguardable, match="share memory"):
        describe(aten.fill_.Scalar, (spread, 1.0), {}, spread)
    apart = call_of(aten.add_.Tensor, x[:4], x[4:])
    assert apart.mutated == (0,)


def test_unknown_operators_cannot_be_repeated():
    call = call_of(aten.relu.default, torch.zeros(3))
    with pytest.raises(Unguardable, match="not registered"):
        arguments_of(Call(**{**vars(call), "operator": "nowhere::relu"}), [])
    renamed = Call(**{**vars(call), "arguments": (Argument(name="x", value={"tensor": 0}),)})
    with pytest.raises(Unguardable, match="takes self"):
        arguments_of(renamed, [torch.zeros(3)])
