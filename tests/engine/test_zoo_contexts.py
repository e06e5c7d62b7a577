"""Every model of the zoo, run in each way that torch has, with echoes for all that a guard covers:
kernels that compute what eager computes, so that whatever runs gives the same bits as without."""

import copy
import sys
import threading
from pathlib import Path

import pytest
import torch
from zoo_cases import ZOO, Echo, order_of, same, seen

from kernelforge_engine.dispatch import shim as shim_module
from kernelforge_engine.errors import ModelRaised
from kernelforge_engine.worker.drift import tensors_of
from kernelforge_engine.worker.load import load

pytestmark = pytest.mark.filterwarnings("ignore")  # what the models import warns of its own future

CACHE = Path.home() / ".cache" / "kernelforge"
THREADS = 3


@pytest.fixture(scope="module")
def shim():
    """The shim, in a process that computes in one thread: models this small wait for more."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield shim_module.load(CACHE)
    torch.set_num_threads(threads)


class Echoed:
    """A model with echoes for every call of one of its runs."""

    def __init__(self, shim, run):
        self._shim, self._seen = shim, seen(run)
        self._echoes = {key: Echo(call) for key, call in self._seen.calls.items()}

    def __enter__(self):
        for echo in self._echoes.values():
            echo.nested = 0
        self._handles = {
            key: self._shim.add(echo.call, echo.plan, echo.code)
            for key, echo in self._echoes.items()
        }
        return self

    def __exit__(self, *_):
        for handle in self._handles.values():
            self._shim.remove(handle)

    def counts(self):
        """Hits by operator and guard words, but for those of eager's own inside of an echo."""
        found = {k: self._shim.hits(h) - self._echoes[k].nested for k, h in self._handles.items()}
        return {key: n for key, n in found.items() if n}

    def expected(self, runs=1):
        return {key: runs * n for key, n in self._seen.counts.items()}


@pytest.fixture(scope="module", params=ZOO)
def model(request):
    path = sys.path[:]  # loading a model puts its folder there
    loaded = load(order_of(request.param))
    loaded.run()  # some keep what they made in their first run
    yield loaded
    sys.path[:] = path


@pytest.fixture(scope="module")
def echoed(shim, model):
    """The model, with echoes of a run without gradients."""
    return Echoed(shim, model.run)


def answers(model, context):
    with context():
        return tensors_of(model.run())


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_a_model_without_gradients_is_served_and_the_same(model, echoed, context):
    expected = answers(model, context)
    with echoed:
        assert same(answers(model, context), expected)
        assert echoed.counts() == echoed.expected()


def bfloat16():
    # Without its cache, whose entries of one run would be missing from the calls of the next.
    return torch.autocast("cpu", torch.bfloat16, cache_enabled=False)


def test_a_model_under_autocast_is_served_and_the_same(shim, model):
    """Autocast acts above the shim, so that kernels of what it casts to serve."""

    def run():
        with bfloat16():
            model.run()

    lstm = any(isinstance(m, torch.nn.LSTM) for m in getattr(model.model, "modules", list)())
    try:
        expected = answers(model, bfloat16)
        echoed = Echoed(shim, run)
    except ModelRaised:
        if not lstm:
            raise
        pytest.skip(
            "some processors have no LSTM in bfloat16; elsewhere a mode hides autocast from what "
            "it calls, so that it cannot be recorded"
        )
    with echoed:
        assert same(answers(model, bfloat16), expected)
        assert echoed.counts() == echoed.expected()


def test_several_threads_are_served_together(shim, model):
    """Each with a model of its own: what a model keeps is not made for several."""
    if draws(model):
        pytest.skip("it draws random numbers, of which there is one sequence for all threads")
    copies = [copy.deepcopy(model) for _ in range(THREADS)]
    expected = together(copies)
    with Echoed(shim, copies[0].run) as echoed:
        found = together(copies)
        assert echoed.counts() == echoed.expected(THREADS)
    assert all(map(same, found, expected))


def together(models):
    """What each of some models returns in a thread of its own."""
    found = {}

    def run(number, model):
        torch.set_num_threads(1)
        found[number] = tensors_of(model.run())

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(models)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [found[number] for number in range(len(models))]


def draws(model):
    """Whether a model draws random numbers."""
    torch.manual_seed(0)
    before = torch.get_rng_state()
    model.run()
    return not torch.equal(before, torch.get_rng_state())


def gradients(model):
    """Those of the sum of all that a model returns, by its parameters; none where it has none."""
    torch.manual_seed(0)
    with torch.enable_grad():
        outputs = tensors_of([model.model(*args, **kwargs) for args, kwargs in model.fresh()])
        parts = [t.double().sum() for t in outputs if t.requires_grad]
        if not parts:
            return []
        held = getattr(model.model, "parameters", list)()
        wanted = [p for p in held if p.requires_grad]
        found = torch.autograd.grad(sum(parts), wanted, allow_unused=True)
    return [g for g in found if g is not None]


def test_gradients_are_those_of_eager(model, echoed):
    """Calls that record a graph of their own go to eager, and what autograd knows by itself may be
    served below it."""
    expected = gradients(model)
    if not expected:
        pytest.skip("nothing that it returns has a gradient")
    with echoed:
        found = gradients(model)
    assert same(found, expected)
