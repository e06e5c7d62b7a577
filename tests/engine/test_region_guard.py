"""A region is served exactly where its guard words are those that were judged.

Tried on many calls that differ from one in something or nothing, drawn at random.
"""

import random
from dataclasses import replace
from pathlib import Path

import pytest
import region_cases
import torch

from kernelforge_engine.calls import Argument
from kernelforge_engine.cast import manifest
from kernelforge_engine.dispatch import shim as shim_module
from kernelforge_engine.dispatch.facts import facts_of, sift
from kernelforge_engine.dispatch.kernels import Kernel
from kernelforge_engine.dispatch.overhead import hit_us
from kernelforge_engine.dispatch.regions import entered
from kernelforge_engine.dispatch.swapping import regions
from kernelforge_engine.errors import CastRejected
from kernelforge_engine.launch.resolve import buffer_sizes
from kernelforge_engine.plans import ResolvedPlan

CACHE = Path.home() / ".cache" / "kernelforge"
DRAWS = 400


def blend(x, y, many=(), *, scale=1.0, bias=None, mode="plain", flag=True, count=2):
    """Uses everything it is given."""
    total = x * scale + y
    for other in many:
        total = total + other
    if bias is not None:
        total = total + bias
    return (total * count if flag else total - count) + len(mode)


def base():
    x = torch.ones(4, 6)
    return {
        "x": x, "y": torch.ones(4, 6), "many": [torch.ones(4, 6), torch.ones(6)], "scale": 0.5,
        "bias": None, "mode": "plain", "flag": True, "count": 2,
    }  # fmt: skip


def tensors(draw):
    flat = torch.ones(64)
    return draw.choice(
        [
            torch.ones(4, 6), torch.ones(4, 6), torch.ones(1, 6), torch.ones(6, 4).t(),
            torch.ones(4, 6, dtype=torch.float64), flat[1:25].view(4, 6), flat[4:28].view(4, 6),
            torch.ones(4, 12)[:, ::2], torch.ones(4, 1).expand(4, 6), torch.nn.Parameter(flat[:6]),
        ]
    )  # fmt: skip


def changed(draw):
    """A call that differs from base() in up to two arguments."""
    given = base()
    for name in draw.sample(sorted(given), draw.randint(0, 2)):
        given[name] = {
            "x": lambda: tensors(draw),
            "y": lambda: draw.choice([given["x"], tensors(draw), [*given["many"], given["x"]][0]]),
            "many": lambda: draw.choice(
                [[], [tensors(draw)], [tensors(draw), torch.ones(6)], tuple(given["many"])]
            ),
            "scale": lambda: draw.choice([0.5, 1.0, 1, True, 0.0, -0.0, float("inf"), 2.5]),
            "bias": lambda: draw.choice([None, tensors(draw), 1, 1.0, given["x"]]),
            "mode": lambda: draw.choice(["plain", "plane", "", "a longer text than eight"]),
            "flag": lambda: draw.choice([True, False, 1, 0, None]),
            "count": lambda: draw.choice([2, 3, 2.0, -2, 1 << 40]),
        }[name]()
    return given


@pytest.fixture
def kernel():
    call = region_cases.call_of(blend, **base())
    shim = shim_module.load(CACHE)
    empty = ResolvedPlan(buffers=tuple(buffer_sizes(call)), launches=())
    return Kernel(shim, call, call.region, empty)


@pytest.mark.parametrize("seed", range(3))
def test_a_region_is_served_where_all_of_its_words_agree_and_only_there(kernel, seed):
    draw, served = random.Random(seed), regions(shim_module.load(CACHE))
    judged, agreed = kernel.call, 0
    try:
        for _ in range(DRAWS):
            given = changed(draw)
            agrees = region_cases.call_of(blend, **given).words == judged.words
            assert served.enable([kernel], None) == []
            before = kernel.hits
            with torch.no_grad():
                called(draw, given)
                called(draw, given)
            assert (kernel.hits > before) == agrees, given
            agreed += agrees
    finally:
        served.disable([kernel])
    assert DRAWS / 20 < agreed < DRAWS / 2


def called(draw, given):
    """Positional arguments and keywords are one."""
    at = draw.randint(0, 3)
    names = list(given)
    rest = {name: given[name] for name in draw.sample(names[at:], len(names) - at)}
    return blend(*(given[name] for name in names[:at]), **rest)


@pytest.mark.parametrize("seed", range(3))
def test_facts_of_a_record_are_those_of_the_live_call(seed):
    draw = random.Random(seed)
    for _ in range(DRAWS):
        given = changed(draw)
        facts = []
        assert sift(list(given.values()), [], facts) is None
        assert facts_of([a.value for a in entered(given).arguments]) == tuple(facts)


def test_what_a_hit_costs_is_timed_on_one_that_hits(kernel):
    inputs = [torch.ones(4, 6), torch.ones(4, 6), torch.ones(4, 6), torch.ones(6)]
    assert 0 < hit_us(kernel.call, inputs, 2, CACHE) < 10_000


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda c: replace(c, region=None), "program"),
        (lambda c: replace(c, region=replace(c.region, steps=c.region.steps[1:])), "program"),
        (lambda c: replace(c, region=replace(c.region, form="list")), "program"),
        (lambda c: replace(c, arguments=(*c.arguments[:-1], Argument(name="x", value="y"))),
         "guard words"),
        (lambda c: replace(c, region=replace(c.region, returns=(*c.region.returns, 0))), "program"),
    ],
)  # fmt: skip
def test_a_region_whose_program_was_changed_is_refused(tmp_path, change, why):
    code = region_cases.model_code(tmp_path)
    call = region_cases.call_of(code.RMSNorm(), hidden_states=torch.ones(6, 16))
    region_cases.write(tmp_path / "good.cast", (call, region_cases.RMS))
    manifest.read(tmp_path / "good.cast")
    with pytest.raises(CastRejected, match=why):
        region_cases.write(tmp_path / "bad.cast", (change(call), region_cases.RMS))
