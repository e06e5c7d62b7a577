"""Shape families: found among variants, judged at every size that matters, exported one by one."""

import random
from dataclasses import replace

import pytest

from kernelforge_engine.calls import Argument, Call, OutputSpec, Region, Step, TensorSpec
from kernelforge_engine.cast.words import call_words
from kernelforge_engine.families import families, instance
from kernelforge_engine.pool.orders import Sighting
from kernelforge_engine.sizes import numbers

HEADS, WIDTH = 4, 16


def dense(*shape, dtype="float32", device="cpu"):
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    stride = tuple(reversed(strides))
    return TensorSpec(dtype=dtype, shape=shape, stride=stride, device=device)


def seen(operator, inputs, outputs, plain=(), *, us=1.0, calls=1, parameters=(), region=None):
    """A target sighting of one call; `plain` are its arguments that are no tensors."""
    tensors = [Argument(name=f"x{i}", value={"tensor": i}) for i in range(len(inputs))]
    arguments = [*tensors, *(Argument(name=n, value=v) for n, v in plain)]
    if region is not None:
        arguments.append(Argument(name="program", value=region.digest))
    call = Call(
        operator=operator,
        overload="",
        words=(),
        arguments=tuple(arguments),
        inputs=tuple(inputs),
        outputs=tuple(OutputSpec(tensor=t) for t in outputs),
        region=region,
    )
    return Sighting(
        call=replace(call, words=call_words(call)),
        calls=calls,
        eager_us=us,
        share=us * calls / 100,
        floor_us=us / 2,
        module="",
        target=True,
        reason=None,
        examples=(tuple("ab" for _ in inputs),),
        parameters=tuple(parameters),
    )


def appended(length, **more):
    """A KV cache that grows by one."""
    before, new = dense(1, HEADS, length, WIDTH), dense(1, HEADS, 1, WIDTH)
    after = dense(1, HEADS, length + 1, WIDTH)
    return seen("aten::cat", [before, new], [after], [("dim", -2)], **more)


def relu(*shape, **more):
    return seen("aten::relu", [dense(*shape, **more)], [dense(*shape, **more)])


def attended(queries, keys):
    q, k = dense(1, HEADS, queries, WIDTH), dense(1, HEADS, keys, WIDTH)
    return seen("aten::attend", [q, k], [q])


def sliced(length):
    """A region whose steps name a size."""
    steps = (
        Step(
            operator="aten::narrow",
            overload="",
            arguments=(
                Argument(name="self", value={"tensor": 0}),
                Argument(name="length", value=length - 1),
                Argument(name="flag", value=True),
            ),
            results=1,
        ),
    )
    region = Region(kind="module", owner="m.M", source="", steps=steps, returns=(1,), terms=length)
    ends = [dense(2, length)], [dense(2, length - 1)]
    return seen("region::M", *ends, [("eps", 1e-6), ("causal", True)], region=region)


def only(sightings):
    [found] = families(sightings)
    return found


def test_growing_cache_is_one_family_in_its_length():
    found = only([appended(n, us=float(n), calls=2) for n in (12, 13, 14, 16)])
    assert [m.sizes for m in found.family.members] == [(12,), (13,), (14,), (16,)]
    assert found.family.held_out == ((15,),)
    assert (found.calls, found.eager_us, found.share) == (8, 13.75, pytest.approx(1.1))
    assert found.call == appended(16).call  # the dearest
    assert found.target
    assert found.reason is None


def test_every_member_is_made_again_from_its_sizes():
    groups = [
        [appended(n) for n in range(5, 40)],
        [relu(b, n, 8) for b in (1, 2, 3) for n in (16, 32, 64)],
        [sliced(n) for n in (8, 9, 10)],
    ]
    for group in groups:
        found = only(group)
        assert len(found.family.members) == len(group)
        for member, sighting in zip(
            found.family.members, sorted(group, key=lambda s: numbers(s.call)), strict=True
        ):
            assert instance(found.family, found.call, member.sizes) == sighting.call


def test_region_of_another_size_has_another_program():
    found = only([sliced(8), sliced(12)])
    call = instance(found.family, found.call, (10,))
    assert call == sliced(10).call
    assert call.region.steps[0].arguments[1].value == 9
    assert call.region.steps[0].arguments[2].value is True


def test_two_sizes_that_vary_apart_make_one_family():
    found = only([relu(b, n, 8) for b in (1, 2) for n in (16, 32, 64)])
    assert found.family.symbols == ("s0", "s1")
    assert (2, 48) in found.family.held_out
    assert not {m.sizes for m in found.family.members} & set(found.family.held_out)


def test_held_out_sizes_lie_inside_the_range_and_off_the_members():
    found = only([relu(n, 8) for n in (10, 11, 30)])
    sizes = [n for (n,) in found.family.held_out]
    assert len(sizes) == 3
    assert all(10 < n < 30 and n != 11 for n in sizes)
    assert only([relu(n, 8) for n in (16, 32)]).family.held_out == ((24,),)
    assert only([relu(n, 8) for n in (12, 13, 14)]).family.held_out == ()


def test_members_that_fit_together_leave_an_odd_one_out():
    found = only([attended(5, 5), *(attended(1, n) for n in range(6, 12))])
    assert [m.sizes for m in found.family.members] == [(n,) for n in range(6, 12)]


def test_two_prompts_of_one_model_make_queries_and_keys_vary_apart():
    found = only([attended(5, 5), attended(7, 7), *(attended(1, n) for n in range(6, 12))])
    assert len(found.family.members) == 8
    assert found.family.symbols == ("s0", "s1")


APART = {
    "dtypes": [relu(8, 4), relu(9, 4, dtype="float64")],
    "ranks": [relu(8, 4), relu(9, 4, 1)],
    "operators": [relu(8), seen("aten::gelu", [dense(9)], [dense(9)])],
    "areas": [relu(1, 8, n, n) for n in (16, 32)],
    "a volume": [relu(n, n, n) for n in (4, 5, 6, 7)],
    "falling sizes": [relu(64, 56, 1), relu(128, 28, 1)],
    "which dimension": [
        seen("aten::sum", [dense(n, n)], [dense(n)], [("dim", d)]) for n, d in ((8, 0), (16, 1))
    ],
    "scalars": [seen("aten::add", [dense(8)], [dense(8)], [("other", n)]) for n in (1, 2)],
    "reals": [seen("aten::mul", [dense(n)], [dense(n)], [("other", n / 2)]) for n in (1, 2)],
    "flags": [seen("aten::any", [dense(n)], [dense(n)], [("keepdim", n > 8)]) for n in (8, 9)],
    "weights": [
        seen("aten::linear", [dense(2, n), dense(4, n)], [dense(2, 4)], parameters=[1])
        for n in (8, 16)
    ],
    "alignment": [
        relu(8),
        (lambda s: replace(s, call=replace(s.call, inputs=(replace(dense(9), aligned=False),))))(
            relu(9)
        ),
    ],
    "what is no target": [relu(8), replace(relu(9), target=False, reason="it is random")],
}


@pytest.mark.parametrize("name", APART)
def test_variants_that_differ_in_more_than_a_size_stay_apart(name):
    assert families(APART[name]) == []


def test_random_unrelated_variants_never_form_a_family():
    rng = random.Random(1)
    for _ in range(200):
        shapes = {tuple(rng.randrange(1, 200) for _ in range(3)) for _ in range(3)}
        assert families([relu(*shape) for shape in shapes]) == []


def test_families_are_the_same_whatever_the_order_and_the_dearest_member():
    group = [attended(1, n) for n in range(6, 12)] + [attended(3, 40)]
    first = only(group)
    random.Random(2).shuffle(group)
    again = only([replace(s, calls=i + 1) for i, s in enumerate(group)])
    assert again.family.fits == first.family.fits
