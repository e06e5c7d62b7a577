"""Models that misbehave give a clear report, and what was recorded of them is kept."""

import pytest

from kernelforge_engine.errors import ModelRaised


async def test_a_model_that_raises_half_way_keeps_what_it_ran(recorded):
    capture, variants = await recorded(
        """
class Model(torch.nn.Module):
    def forward(self, x):
        y = torch.softmax(x @ x, -1)
        raise ValueError("the second half is missing.")


def make_model():
    return Model()


def make_inputs():
    torch.manual_seed(0)
    return torch.randn(4, 4)
"""
    )
    assert capture.error == "ValueError: the second half is missing"
    assert (capture.wall_us, capture.bound, capture.coverage) == (None, None, None)
    (softmax,) = variants["aten::softmax.int"]
    assert softmax.target
    assert softmax.examples
    assert capture.calls == 2


async def test_a_model_that_raises_before_it_runs_anything_is_an_error(recorded):
    with pytest.raises(ModelRaised, match="RuntimeError: not today"):
        await recorded(
            """
def make_model():
    def forward(x):
        raise RuntimeError("not today")

    return forward


def make_inputs():
    return torch.ones(4)
"""
        )


async def test_a_model_that_raises_in_a_later_run_keeps_what_it_ran_before(recorded):
    capture, variants = await recorded(
        """
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.runs = 0

    def forward(self, x):
        self.runs += 1
        y = x.exp()
        if self.runs > 1:
            raise RuntimeError("I was used up.")
        return y.sin()


def make_model():
    return Model()


def make_inputs():
    return torch.ones(4)
"""
    )
    assert capture.error == "RuntimeError: I was used up"
    assert capture.wall_us is None
    assert variants["aten::exp"][0].target


async def test_values_that_are_not_numbers_are_compared_as_they_are(recorded):
    capture, variants = await recorded(
        """
class Model(torch.nn.Module):
    def forward(self, x):
        return (x / x).relu(), x.log(), -x.reciprocal()


def make_model():
    return Model()


def make_inputs():
    return torch.tensor([0.0, 1.0, -1.0, float("inf")])
"""
    )
    assert capture.output_drift == 0
    assert all(v.target for vs in variants.values() for v in vs)


async def test_shapes_that_depend_on_data_are_recorded_and_are_no_targets(recorded):
    capture, variants = await recorded(
        """
class Model(torch.nn.Module):
    def forward(self, x):
        chosen = x[x > 0]
        places = torch.nonzero(x)
        return chosen.exp() + len(places) + x.max().item()


def make_model():
    return Model()


def make_inputs():
    torch.manual_seed(0)
    return torch.randn(32)
"""
    )
    assert "depends on data" in variants["aten::index.Tensor"][0].reason
    assert "depends on data" in variants["aten::nonzero"][0].reason
    assert variants["aten::exp"][0].target
    assert (capture.output_drift, capture.coverage) == (0, 1)


async def test_hooks_that_change_outputs_act_as_they_do_unobserved(recorded):
    capture, variants = await recorded(
        """
def make_model():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    model[0].register_forward_hook(lambda module, args, output: output.neg())
    model[1].register_forward_pre_hook(lambda module, args: (args[0].sigmoid(),))
    return model


def make_inputs():
    torch.manual_seed(0)
    return torch.randn(4, 4)
"""
    )
    assert variants["aten::neg"][0].target
    assert variants["aten::sigmoid"][0].target
    assert (capture.output_drift, capture.coverage) == (0, 1)


async def test_work_of_another_thread_is_reported_as_unseen(recorded):
    capture, variants = await recorded(
        """
import threading


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)

    def forward(self, x):
        found = []
        work = threading.Thread(target=lambda: found.append(self.inner(x).detach()))
        work.start()
        work.join()
        return found[0].exp() + self.inner(x)


def make_model():
    torch.manual_seed(0)
    return Model()


def make_inputs():
    torch.manual_seed(0)
    return torch.randn(4, 4)
"""
    )
    assert variants["aten::linear"][0].calls == 1
    assert variants["aten::linear"][0].module == "inner (Linear)"
    assert capture.unseen["aten::linear"] == 1
    assert 0 < capture.coverage < 1


async def test_outputs_that_hold_no_numbers_are_not_compared(recorded):
    capture, variants = await recorded(
        """
def make_model():
    return lambda x: ["yes" if v else "no" for v in (x.exp() > 2).tolist()]


def make_inputs():
    return torch.ones(4)
"""
    )
    assert capture.output_drift is None
    assert variants["aten::exp"][0].target
