"""How far an output moved, on tensors whose answer is known."""

import math
from dataclasses import dataclass

import pytest
import torch

from kernelforge_engine.errors import MeasurementFailed
from kernelforge_engine.measurements import ImageDrift
from kernelforge_engine.worker import drift
from kernelforge_engine.worker.peaks import peak_bytes


@dataclass
class Output:
    logits: torch.Tensor
    loss: torch.Tensor | None = None


def test_the_largest_difference_is_also_given_relative_to_the_original():
    a = {"x": [torch.tensor([3.0, 4.0])], "n": torch.tensor([1, 2]), "s": "text"}
    b = {"x": [torch.tensor([3.0, 4.5])], "n": torch.tensor([1, 2]), "s": "text"}
    largest, relative = drift.drift(a, b)
    assert largest == 0.5
    assert math.isclose(relative, 0.5 / math.sqrt(12.5))
    infinite = torch.tensor([math.inf, math.nan])
    assert drift.drift(infinite, infinite.clone()) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("a", "b", "why"),
    [
        (torch.zeros(2), torch.tensor([math.inf, math.nan]), "not finite"),
        (torch.zeros(2), torch.zeros(3), "same tensors"),
        ("text", "text", "no tensor"),
    ],
)
def test_outputs_that_cannot_be_compared_are_refused(a, b, why):
    with pytest.raises(MeasurementFailed, match=why):
        drift.drift(a, b)


def test_the_divergence_of_two_known_distributions():
    # p = (1/2, 1/2) and q = (1/4, 3/4): sum p ln(p / q) = ln 2 - ln 3 / 2
    p = torch.log(torch.tensor([[0.5, 0.5], [0.25, 0.75]])) + 7.0
    q = torch.log(torch.tensor([[0.25, 0.75], [0.25, 0.75]]))
    expected = (math.log(2) - math.log(3) / 2) / 2  # the second row does not differ
    assert math.isclose(drift.kl_divergence(p, q), expected, rel_tol=1e-6)
    many = torch.randn(1000, 50)
    assert drift.kl_divergence(many, many.clone()) == pytest.approx(0, abs=1e-12)


def test_a_token_that_is_ruled_out_does_not_make_the_divergence_infinite():
    p = torch.tensor([[0.0, 0.0, -math.inf]])
    q = torch.tensor([[0.0, -math.inf, -math.inf]])
    assert 300 < drift.kl_divergence(p, q) < 400
    assert drift.kl_divergence(q, p) == pytest.approx(math.log(2))


def test_half_of_the_choices_are_the_same():
    a = torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [0.0, 2.0]])
    b = torch.tensor([[1.0, 0.0], [1.0, 0.0], [2.0, 3.0], [0.0, 2.0]])
    assert drift.same_choice(a, b) == 0.5


def test_logits_are_found_wherever_an_output_names_them():
    a, b = torch.zeros(2, 3, 4), torch.zeros(2, 3, 4)
    a[..., 1] = b[..., 1] = 1.0
    b[0, 0] = torch.tensor([5.0, 0.0, 0.0, 0.0])
    original = [Output(logits=a), {"logits": a, "loss": torch.zeros(())}]
    found = drift.logit_drift(original, [Output(logits=b), {"logits": b, "loss": torch.zeros(())}])
    assert found.positions == 12
    assert found.same_token == pytest.approx(10 / 12)
    assert found.kl_nats > 0
    assert drift.logit_drift([a], [b]) is None


def test_positions_without_a_softmax_are_left_out():
    a = torch.tensor([[0.0, 1.0], [math.nan, 0.0], [-math.inf, -math.inf], [math.inf, 0.0]])
    found = drift.logit_drift({"logits": a}, {"logits": a.clone()})
    assert (found.positions, found.same_token, found.kl_nats) == (1, 1.0, 0.0)


def test_the_psnr_of_a_known_error():
    a = torch.zeros(1, 3, 16, 16)
    a[0, 0, 0, 0] = 2.0  # the range
    b = a + 0.02
    assert drift.psnr(a, b) == pytest.approx(20 * math.log10(2.0 / 0.02), rel=1e-6)
    assert drift.psnr(a, a.clone()) == math.inf
    assert drift.psnr(torch.ones(3, 16, 16), torch.zeros(3, 16, 16)) is None


def test_the_worst_picture_speaks_and_what_is_no_picture_does_not():
    a = torch.rand(2, 3, 16, 16)
    worse, better = a + 0.1, a + 0.001
    found = drift.image_drift([a, a], [better, worse])
    assert found.psnr_db == pytest.approx(drift.psnr(a, worse))
    assert drift.image_drift(a, a.clone()) == ImageDrift(psnr_db=None)
    for other in (torch.rand(2, 4, 16, 16), torch.rand(3, 8, 8), torch.randint(9, (3, 16, 16))):
        assert drift.image_drift(other, other) is None


def test_the_peak_of_a_run_is_what_it_held_at_once():
    x = torch.ones(1 << 18)  # 1 MiB

    def run():
        first = x + 1
        second = first + 1
        del first
        return second + 1

    def twice():
        return [run(), run()]

    mib = 1 << 20
    # A number that is added is a tensor of a few bytes of its own.
    assert peak_bytes(run, torch.device("cpu")) == pytest.approx(2 * mib, rel=1e-4)
    assert peak_bytes(twice, torch.device("cpu")) == pytest.approx(3 * mib, rel=1e-4)
    assert peak_bytes(lambda: None, torch.device("cpu")) is None
