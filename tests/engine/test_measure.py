"""A whole model with and without a cast: every mode, the figures, and what each kernel saves."""

from dataclasses import replace

import cast_cases
import numpy as np
import pytest
import region_cases
import torch
import transformers

from kernelforge_engine.cast import manifest
from kernelforge_engine.dispatch import runtime
from kernelforge_engine.dispatch.guard import describe
from kernelforge_engine.errors import MeasurementFailed
from kernelforge_engine.launch.header import parse_source
from kernelforge_engine.measurements import MODES, GenerationDrift, ImageDrift, LogitDrift
from kernelforge_engine.pool.orders import MeasureOrder, ModelOrder
from kernelforge_engine.records import Outcome, Timing
from kernelforge_engine.worker.budget import Budget, OutOfTime
from kernelforge_engine.worker.generated import generation_drift, generator
from kernelforge_engine.worker.measure import Subject, attribute, compare
from kernelforge_engine.worker.measuring import Measuring
from kernelforge_engine.worker.modes import NoSuchMode
from kernelforge_engine.worker.prediction import Hits, predicted_us, saving
from kernelforge_engine.worker.ways.generation import Generation

pytestmark = pytest.mark.calm

HEADER = manifest.Header(
    created_at=0.0, kernelforge="0", torch=str(torch.__version__), device_name="x"
)
TIMING = Timing(
    outcome=Outcome.FASTER, speedup=1.5, low=1.4, high=1.6, eager_us=3.0, candidate_us=2.0,
    scope="O",
)  # fmt: skip
# Eager takes several operators for it, so this one is faster on any machine.
ROLL = """/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
extern "C" void k(const float* x, float* y, long n) {
  for (long i = 0; i < n; ++i) y[(i + 1) % n] = x[i];
}
"""
# Right, and slower than eager beyond any doubt.
SLOW_TANH = """/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
#include <cmath>
extern "C" void k(const float* x, float* y, long n) {
  for (long i = 0; i < n; ++i) {
    double sum = 0;
    for (int t = 0; t < 40; ++t) sum += std::tanh(x[i] + t * 1e-30f);
    y[i] = (float)(sum / 40);
  }
}
"""
ROLLING = (torch.ops.aten.roll.default, (torch.ones(8, 8), [1]), ROLL, "n1")
TANH = (torch.ops.aten.tanh.default, (torch.ones(8, 8),), SLOW_TANH, "n2")


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.tanh(torch.roll(x, 1))


def entry(operator, arguments, text, node_id):
    with torch.no_grad():
        call = describe(operator, arguments, {}, operator(*arguments))
    return cast_cases.entry(text, call, node=node_id, timing=TIMING, calls=1)


def cast_of(folder, *entries):
    texts = {parse_source(text, "cpu").digest: text for text in (ROLL, SLOW_TANH)}
    used = {e.source_digest: texts[e.source_digest] for e in entries}
    manifest.write(folder / "a.cast", HEADER, entries, sources=used, binaries={})
    return folder / "a.cast"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return cast_of(tmp_path_factory.mktemp("casts"), entry(*ROLLING), entry(*TANH))


@pytest.fixture
def subject(path):
    return Subject(model=Model(), sets=[((torch.randn(8, 8),), {})], cast=runtime.load(path))


def rng():
    return np.random.default_rng(0)


def short():
    """Time for the fewest quartets of a small model."""
    return Budget(60.0, 1)


def test_a_model_is_compared_with_and_without_a_cast(subject):
    found = compare(subject, "eager", short(), rng())
    assert found.mode == "eager"
    assert found.low <= found.speedup <= found.high < 1  # the slow kernel decides
    assert found.quartets >= 8
    assert (found.run_hits, found.fallbacks) == (2, {})
    assert found.hits > found.run_hits
    assert 0 < found.max_abs < 1e-6
    assert found.original_bytes == found.patched_bytes == 2 * 8 * 8 * 4
    assert not subject.cast.counters().enabled


def test_input_sets_that_the_cast_does_not_cover_stay_eager(path):
    x = torch.randn(5, 16)
    sets = [((), {"x": x}), ((x,), {})]
    found = compare(Subject(model=Model(), sets=sets, cast=runtime.load(path)), "eager", short(),
                    rng())  # fmt: skip
    assert (found.max_abs, found.max_relative, found.hits, found.run_hits) == (0.0, 0.0, 0, 0)
    assert found.fallbacks["aten::tanh"]["guard"] > 0
    assert found.saving.predicted_us == 0
    assert found.saving.flag is None


# What inductor imports and does is its own affair.
@pytest.mark.filterwarnings("ignore")
def test_each_side_is_compiled_by_itself(subject):
    """The slow kernel shows which side runs kernels."""
    found = compare(subject, "compile", short(), rng())
    assert found.mode == "compile"
    assert found.run_hits == 2
    assert found.high < 1
    assert found.max_abs < 1e-6
    again = compare(subject, "eager", short(), rng())
    assert again.run_hits == 2


@pytest.mark.filterwarnings("ignore")
def test_a_model_that_cannot_be_compiled_says_why(path):
    class Stubborn(torch.nn.Module):
        @torch.compiler.disable
        def forward(self, x):
            return torch.tanh(x)

    x = torch.randn(8, 8)
    stubborn = Subject(model=Stubborn(), sets=[((x,), {})], cast=runtime.load(path))
    with pytest.raises(NoSuchMode, match="nothing in it to compile"):
        compare(stubborn, "compile", short(), rng())
    assert not stubborn.cast.counters().enabled


def test_what_one_kernel_saves_is_the_time_without_it(subject):
    served = {h[0].node_id: h for h in Measuring(subject, order(), ignore).kernels}
    slow = attribute(subject, served["n2"], short(), rng())
    assert (slow.node_id, slow.operator, slow.run_hits, slow.slows) == ("n2", "aten::tanh", 1, True)
    assert slow.predicted_us == pytest.approx(1.0)
    assert slow.low_us <= slow.saving_us <= slow.high_us < 0
    fast = attribute(subject, served["n1"], short(), rng(), without=["n2"])
    assert not fast.slows


def test_a_kernel_that_serves_nothing_is_not_timed(path):
    cast = runtime.load(path)
    other = Subject(model=torch.nn.Tanh(), sets=[((torch.randn(8, 8),), {})], cast=cast)
    kernels = {h[0].node_id: h for h in Measuring(other, order(), ignore).kernels}
    unused = attribute(other, kernels["n1"], short(), rng())
    assert (unused.saving_us, unused.slows) == (None, False)
    assert "served no call" in unused.unmeasured


def order(**changes):
    model = ModelOrder(model="", inputs=(), device="cpu")
    return MeasureOrder(
        model=model, cast="", cache="", **{"kernels": True, "seconds": 60.0, **changes}
    )


def ignore(_progress):
    pass


def test_kernels_that_slow_the_model_are_left_out_before_it_is_compared(subject):
    found = Measuring(subject, order(drop=True), ignore).run()
    assert found.dropped == ("n2",)
    (row,) = found.rows
    assert (row.run_hits, row.max_abs) == (1, 0.0)
    kept = Measuring(subject, order(), ignore).run()
    assert kept.dropped == ()
    assert [k.node_id for k in kept.kernels if k.slows] == ["n2"]
    assert kept.rows[0].run_hits == 2


def test_a_mode_that_fails_leaves_the_others(subject):
    steps = []
    modes = ("eager", "reduce-overhead", "cuda_graph")
    found = Measuring(subject, order(modes=modes, kernels=False), steps.append).run()
    assert [row.mode for row in found.rows] == ["eager"]
    assert set(found.failed) == {"reduce-overhead", "cuda_graph"}
    assert "CUDA devices only" in found.failed["cuda_graph"]
    assert [step.done for step in steps] == [0, 1, 2, 3]


def test_time_that_runs_out_is_said_of_every_kernel_and_mode(subject):
    found = Measuring(subject, order(seconds=1e-6), ignore).run()
    assert found.rows == ()
    assert "8 quartets of it would take about" in found.failed["eager"]
    assert all("of the time allowed" in k.unmeasured for k in found.kernels)
    assert {k.node_id for k in found.kernels} == {"n1", "n2"}


def test_the_time_is_shared_out_among_what_is_left():
    now = [0.0]
    budget = Budget(110.0, 2, clock=lambda: now[0])
    assert budget.quartets(5.0) == 10  # 55 s for each part, and a tenth in reserve
    now[0] = 20.0  # it took less
    assert budget.quartets(5.0) == 16
    now[0] = 109.0
    with pytest.raises(OutOfTime, match="8 quartets of it would take about 44 s, and 1 s"):
        budget.quartets(5.0)


def timing(eager_us, candidate_us):
    return replace(TIMING, eager_us=eager_us, candidate_us=candidate_us)


def served(*counts):
    return [
        Hits(node_id=f"n{i}", operator="aten::x", timing=timed, hits=hits)
        for i, (timed, hits) in enumerate(counts)
    ]


def test_the_prediction_is_the_sum_over_served_calls():
    hits = served((timing(10.0, 4.0), 5), (timing(30.0, 20.0), 1), (None, 3))
    found = saving(hits, 160.0, (38.0, 30.0, 45.0))
    assert found.predicted_us == 5 * 6.0 + 10.0
    assert found.share == pytest.approx((50 + 30) / 160)
    assert found.ceiling == pytest.approx(2.0)
    assert (found.untimed_hits, found.flag) == (3, None)
    assert predicted_us(hits[2:]) is None
    assert predicted_us(served((None, 0))) == 0


@pytest.mark.parametrize(
    ("measured", "flagged"),
    [
        ((20.0, 15.0, 25.0), None),
        ((48.0, 40.0, 60.0), None),
        ((10.0, 5.0, 15.0), "overlap with other work, cache effects, or a wrong region"),
        ((60.0, 55.0, 70.0), "overlap with other work, cache effects, or a wrong region"),
        ((10.0, -20.0, 30.0), "measured too loosely"),
    ],
)
def test_a_saving_outside_of_what_was_predicted_is_flagged(measured, flagged):
    found = saving(served((timing(10.0, 6.0), 10)), 1000.0, measured)
    assert found.predicted_us == 40
    if flagged is None:
        assert found.flag is None
    else:
        assert flagged in found.flag
        assert ("outside [0.5, 1.2] x predicted" in found.flag) == ("loosely" not in flagged)


def test_eager_times_that_exceed_the_model_have_no_ceiling():
    assert saving(served((timing(10.0, 6.0), 10)), 90.0, (1.0, 0.0, 2.0)).ceiling is None


def test_modes_are_those_the_records_name():
    assert MODES == ("eager", "compile", "reduce-overhead", "cuda_graph")


def test_outputs_that_are_not_finite_with_the_cast_are_no_measurement(tmp_path):
    broken = SLOW_TANH.replace("(float)(sum / 40)", "0.0f / 0.0f")
    source = parse_source(broken, "cpu")
    wrong = entry(torch.ops.aten.tanh.default, (torch.ones(8, 8),), broken, "n3")
    file = tmp_path / "wrong.cast"
    manifest.write(file, HEADER, [wrong], sources={source.digest: broken}, binaries={})
    bad = Subject(model=Model(), sets=[((torch.ones(8, 8),), {})], cast=runtime.load(file))
    with pytest.raises(MeasurementFailed, match="not finite"):
        compare(bad, "eager", short(), rng())
    assert not bad.cast.counters().enabled


def test_the_kernel_of_a_region_is_measured_like_any_other(tmp_path):
    code, x = region_cases.model_code(tmp_path), torch.randn(6, 16)
    call = region_cases.call_of(code.RMSNorm(), hidden_states=x)
    cast = runtime.load(region_cases.write(tmp_path / "norms.cast", (call, region_cases.RMS)))
    twice = torch.nn.Sequential(code.RMSNorm(), code.RMSNorm())
    found = Measuring(Subject(model=twice, sets=[((x,), {})], cast=cast), order(), ignore).run()
    assert (found.rows[0].run_hits, found.rows[0].fallbacks) == (2, {})
    (kernel,) = found.kernels
    assert (kernel.operator, kernel.run_hits) == ("region::RMSNorm", 2)
    assert kernel.low_us <= kernel.saving_us <= kernel.high_us


def tiny_llama():
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=40, pad_token_id=0,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config).eval()


def test_a_language_model_is_also_compared_by_its_logits_and_what_it_generates(path):
    prompt = {"input_ids": torch.arange(3, 12).reshape(1, 9)}
    cast = runtime.load(path)
    found = compare(Subject(model=tiny_llama(), sets=[((), prompt)], cast=cast), "eager", short(),
                    rng())  # fmt: skip
    assert found.logits == LogitDrift(kl_nats=0.0, same_token=1.0, positions=9)
    assert found.generation == GenerationDrift(same_token=1.0, tokens=40 - 9 - 1)
    assert found.image is None


def test_a_generation_that_differs_or_fails_is_told():
    model, inputs = tiny_llama(), ((torch.arange(3, 12).reshape(1, 9),), {})
    saved = [p.detach().clone() for p in model.parameters()]

    def broken():
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(torch.randn_like(parameter))

    def whole():
        with torch.no_grad():
            for parameter, value in zip(model.parameters(), saved, strict=True):
                parameter.copy_(value)

    found = generation_drift(model, inputs, 128, (whole, broken))
    assert found.tokens == 30
    assert found.same_token < 1
    assert "no time or room" in generation_drift(model, inputs, 4, (whole, whole)).failed
    wrong = ((), {"pixels": torch.zeros(1, 9)})
    assert "generate() raised" in generation_drift(model, wrong, 16, (whole, whole)).failed
    assert generator(torch.nn.ReLU()) is None
    assert generator(Generation(model, 4)) is model


def test_a_picture_is_also_compared_by_its_psnr(path):
    cast = runtime.load(path)
    drawing = Subject(model=torch.nn.Identity(), sets=[((torch.rand(3, 16, 16),), {})], cast=cast)
    assert compare(drawing, "eager", short(), rng()).image == ImageDrift(psnr_db=None)


def test_a_region_that_is_looked_at_again_on_every_entry_counts_once_it_is_served(tmp_path):
    code, x = region_cases.model_code(tmp_path), torch.randn(6, 16)
    norm = code.RMSNorm()
    norm.seen = []  # nobody can say whether it is the same one later
    call = region_cases.call_of(norm, hidden_states=x)
    cast = runtime.load(region_cases.write(tmp_path / "norm.cast", (call, region_cases.RMS)))
    found = compare(Subject(model=norm, sets=[((x,), {})], cast=cast), "eager", short(), rng())
    assert found.run_hits == 1
    assert 0 < found.max_abs < 1e-5
    assert found.fallbacks["region::RMSNorm"]["first_call"] > 1
