"""Fuzzed candidates and mutated casts: each is answered, and no answer says anything of the host.

The whole run is a script: see fuzzing.py beside this.
"""

import contextlib
import random
import shutil

import cast_cases
import fuzzing
import pytest

from kernelforge_engine.calls import Argument, Call, OutputSpec, TensorSpec
from kernelforge_engine.cast import keys, publish
from kernelforge_engine.cast.merging import merge
from kernelforge_engine.cast.words import words_of
from kernelforge_engine.launch.header import SourceRejected, parse_source
from kernelforge_engine.launch.resolve import resolve

CANDIDATES, CASTS, PARSED = 60, 150, 1500
TENSOR = TensorSpec(dtype="float32", shape=(8, 16), stride=(16, 1), device="cpu")
INPUT = {"tensor": 0}
CALL = Call(
    operator="aten::relu",
    overload="",
    words=words_of([INPUT], [TENSOR]),
    arguments=(Argument(name="self", value=INPUT),),
    inputs=(TENSOR,),
    outputs=(OutputSpec(tensor=TENSOR),),
)


@pytest.fixture
def cast(tmp_path):
    """A signed cast with a family, two machines, two binaries and samples."""
    gpu, image = cast_cases.gpu_entry("sm_90", "NVIDIA H200", node="n2")
    other, more = cast_cases.gpu_entry("sm_80", "NVIDIA A100", node="n2")
    sizes = [cast_cases.entry(call=cast_cases.relu((n, 16))) for n in (8, 9)]
    casts = [
        cast_cases.written(tmp_path / "a.cast", *sizes, gpu, binaries=image),
        cast_cases.written(tmp_path / "b.cast", other, binaries=more),
    ]
    publish.save(tmp_path / "good.cast", merge(casts).draft)
    keys.generate(tmp_path / "key")
    publish.sign(tmp_path / "good.cast", tmp_path / "key")
    return tmp_path / "good.cast"


def test_a_strange_header_has_a_plan_or_is_refused():
    rng, planned = random.Random(1), 0
    for _ in range(PARSED):
        text = fuzzing.candidate(rng, "/nowhere", 0.0)
        if "\ud800" in text:
            continue
        with contextlib.suppress(SourceRejected):
            resolve(parse_source(text, "cpu").plan, CALL)
            planned += 1
    assert 0 < planned < PARSED


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ here")
async def test_strange_candidates_and_casts_are_answered_without_a_word_of_the_host(tmp_path, cast):
    found = await fuzzing.fuzzed(
        tmp_path, candidates=CANDIDATES, casts=CASTS, seed=2, sources=0.1, cast=cast
    )
    assert found.failures == []
    assert sum(found.outcomes.values()) == CANDIDATES + CASTS
    assert found.outcomes["rejected_source"] > 0
    assert found.outcomes["cast rejected"] > found.outcomes["cast read"]
