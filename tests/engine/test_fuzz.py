"""Fuzzed candidates and mutated casts: each is answered, and no answer says anything of the host.

The whole run is a script: see fuzzing.py beside this.
"""

import contextlib
import importlib.util
import random
import shutil
import sys
from pathlib import Path

import pytest

from kernelforge_engine.calls import Argument, Call, OutputSpec, TensorSpec
from kernelforge_engine.cast import manifest
from kernelforge_engine.cast.words import words_of
from kernelforge_engine.launch.header import SourceRejected, parse_source
from kernelforge_engine.launch.resolve import resolve
from kernelforge_engine.records import Label, Status, Verdict

CANDIDATES, CASTS, PARSED = 60, 150, 1500


def _shared():
    path = Path(__file__).with_name("fuzzing.py")
    spec = importlib.util.spec_from_file_location("fuzzing", path)
    module = sys.modules.setdefault(spec.name, importlib.util.module_from_spec(spec))
    if not hasattr(module, "Fuzz"):
        spec.loader.exec_module(module)
    return module


fuzzing = _shared()
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
    """A small cast."""
    text = f"/* kernelforge\n{fuzzing.HEADER}*/\n{fuzzing.BODY}"
    source = parse_source(text, "cpu")
    entry = manifest.Entry(
        node_id="n1",
        call=CALL,
        backend="cpu",
        source_digest=source.digest,
        plan=source.plan,
        resolved=resolve(source.plan, CALL),
        binaries=(),
        verdict=Verdict(status=Status.VALID, reason="every rule holds"),
        timing=None,
        label=Label.GENERATED,
        share=0.5,
        calls=1,
    )
    header = manifest.Header(created_at=0.0, kernelforge="0", torch="2", device_name="a CPU")
    path = tmp_path / "good.cast"
    manifest.write(path, header, [entry], sources={source.digest: text}, binaries={})
    return path


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
