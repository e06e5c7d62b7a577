"""Models that are replayed as CUDA graphs, as far as that shows on a machine without one: who may
ask for it, what stays as it was, and why a call runs as before."""

import copy
import pickle

import pytest
import region_cases
import torch

from kernelforge_engine import cast as casts
from kernelforge_engine.dispatch.signature import rebuilt, signed
from kernelforge_engine.dispatch.watching import Watch
from kernelforge_engine.errors import BadOption


@pytest.fixture
def model(code):
    return code.Model().eval().requires_grad_(False)


def eager(cast):
    return dict(cast.counters().graphs.eager)


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
@pytest.mark.parametrize("given", [None, len, torch.nn.Identity()])
def test_a_graph_needs_a_module_of_python(norms, given):
    if isinstance(given, torch.nn.Module):
        given = torch.jit.script(given)
    with pytest.raises(BadOption, match=r"cuda_graph = True .* Next: use enable\(model"):
        norms.enable(given, cuda_graph=True)
    assert not norms.counters().enabled


@pytest.mark.parametrize("how", [casts.CudaGraph(limit=0), 3])
def test_what_is_no_way_of_replaying_is_refused_with_what_is(norms, model, how):
    with pytest.raises(BadOption, match="Next: use"):
        norms.enable(model, cuda_graph=how)
    assert not norms.counters().enabled


def test_a_model_is_replayed_by_one_cast_at_a_time(norms, model, code, x, tmp_path):
    call = region_cases.call_of(code.rotate, q=x, cos=x + 1, sin=x + 2)
    other = casts.load(region_cases.write(tmp_path / "o.cast", (call, region_cases.ROTATE)))
    norms.enable(model, cuda_graph=True)
    for cast in (norms, other):
        with pytest.raises(BadOption, match="replayed already"):
            cast.enable(model, cuda_graph=True)
    assert not other.counters().enabled
    other.enable(code.Model(), cuda_graph=True)
    norms.disable()
    other.enable(model, cuda_graph=True)
    assert "__call__" in vars(code.Model)
    other.disable()
    assert "__call__" not in vars(code.Model)


def test_a_model_on_the_cpu_runs_as_before_and_is_counted(norms, model, x):
    expected = model(x)
    norms.enable(model, cuda_graph=True)
    model(x)
    assert torch.allclose(model(x), expected, atol=1e-5)
    counters = norms.counters()
    assert (counters.graphs.captured, counters.graphs.replayed) == (0, 0)
    assert counters.hits == 2
    assert eager(norms) == {"device": 2}
    norms.disable()
    model(x)
    assert eager(norms) == {"device": 2}


def test_calls_say_why_they_cannot_be_replayed(norms, model, x):
    norms.enable(model, cuda_graph=True)
    with Watch([], x.device):
        model(x)
    torch.func.vmap(model)(x[None])
    with pytest.raises(TypeError):
        model(x, object())
    model.norm.scale = x.to_sparse()
    model.norm.register_buffer("held", model.norm.scale)
    model(x)
    assert eager(norms) == {"key_set": 3, "unsupported_argument": 1}


def test_a_model_looks_the_same_and_its_copies_run_by_themselves(norms, model, x):
    before = pickle.dumps(model), list(model.state_dict()), dict(vars(model))
    norms.enable(model, cuda_graph=True)
    assert (pickle.dumps(model), list(model.state_dict()), dict(vars(model))) == before
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(twin(x), twin(x))
        assert not eager(norms)
    norms.disable()
    assert (pickle.dumps(model), list(model.state_dict()), dict(vars(model))) == before


def test_a_call_of_its_own_and_one_that_somebody_put_there_come_back(norms, x):
    class Doubled(torch.nn.Linear):
        def __call__(self, *args):
            return 2 * super().__call__(*args)

    own = Doubled.__call__
    model = Doubled(16, 16).requires_grad_(False)
    expected = model(x)
    norms.enable(model, cuda_graph=True)
    assert torch.equal(model(x), expected)
    norms.disable()
    assert vars(Doubled)["__call__"] is own
    norms.enable(model, cuda_graph=True)
    Doubled.__call__ = replaced = lambda self, t: own(self, t) + 1
    norms.disable()
    assert vars(Doubled)["__call__"] is replaced


def test_models_that_are_gone_make_no_trouble(norms, code, x):
    norms.enable(code.Model(), cuda_graph=True)
    model = norms.enable(code.Model().requires_grad_(False), cuda_graph=True)
    model(x)
    del model
    norms.disable()
    assert "__call__" not in vars(code.Model)
    assert eager(norms) == {"device": 1}


def test_the_kill_switch_replays_nothing(norms, model, monkeypatch):
    monkeypatch.setenv("KERNELFORGE_DISABLE", "1")
    norms.enable(model, cuda_graph=True)
    assert "__call__" not in vars(type(model))


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_compiled_code_of_a_replayed_model_is_whole(norms, x):
    model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU())
    expected = model(x)
    norms.enable(model, cuda_graph=True)
    torch.compiler.reset()
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    with torch.no_grad():
        assert torch.allclose(compiled(x), expected, atol=1e-5)
    assert not eager(norms)
    torch.compiler.reset()


def sign(*args, **kwargs):
    facts, tensors = [], []
    return signed([args, kwargs], tensors, facts), tuple(facts), tensors


def test_calls_are_told_apart_by_all_but_the_values_of_tensors(x):
    same = sign({"a": [x, None]}, scale=0.5)
    assert same[:2] == sign({"a": [x + 1, None]}, scale=0.5)[:2]
    others = [
        sign({"a": [x, None]}, scale=-0.5), sign({"a": [x, None]}, scale=1), sign({"b": [x, None]}),
        sign({"a": (x, None)}, scale=0.5), sign({"a": [x.T, None]}, scale=0.5),
        sign({"a": [x.half(), None]}, scale=0.5), sign({"a": [x[:2], None]}, scale=0.5),
        sign(x, x), sign(x, x + 1),
    ]  # fmt: skip
    assert len({facts for _, facts, _ in [same, *others]}) == 10
    assert sign(1)[1] != sign(True)[1]
    assert sign(0.0)[1] != sign(-0.0)[1]


def test_an_argument_that_may_keep_something_has_no_signature(x):
    class Cache(dict):
        pass

    assert sign(Cache(a=x))[0] == sign(print)[0] == "unsupported_argument"
    assert sign(torch.nn.Buffer(x).as_subclass(type("Odd", (torch.Tensor,), {})))[0] == "key_set"
    assert sign(x.to_sparse())[0] == sign(torch.randn(2, dtype=torch.cfloat).conj())[0] == "key_set"


def test_arguments_are_rebuilt_around_other_tensors(x):
    given = [x, {"y": (x, 1)}, x + 1]
    _, _, tensors = sign(*given)
    others = [t.clone() for t in tensors]
    by = {id(t): o for t, o in zip(tensors, others, strict=True)}
    first, second, third = rebuilt(given, by)
    assert first is others[0] is second["y"][0]
    assert third is others[1]


def watched(run, *given):
    watch = Watch(given, torch.device("cpu"))
    with torch.no_grad(), watch:
        output = run()
    return watch, output


def test_what_a_replay_would_not_repeat_is_seen(x):
    weight, hidden = torch.ones(16), torch.ones(16)
    reasons = {
        "writes": [
            lambda: x.add_(1), lambda: x[0].zero_(), lambda: hidden.mul_(2),
            lambda: torch.add(hidden, 1, out=hidden), lambda: x.T.copy_(x.T),
            lambda: torch.nn.functional.batch_norm(x, weight, hidden, training=True),
        ],
        "sync": [
            lambda: x.sum().item(), lambda: bool(x.sum() > 0), lambda: x[x > 0],
            lambda: x.nonzero(), lambda: x.unique(),
            lambda: x.clone().index_put_((x > 0,), weight[0]),
        ],
        "host": [lambda: x + torch.tensor([1.0])],
        "": [
            lambda: (x * 2).add_(1), lambda: x[torch.arange(2)].relu_(), lambda: x + hidden,
            lambda: torch.nn.functional.dropout(x, 0.5, training=True),
            lambda: torch.nn.functional.batch_norm(x, weight, weight, training=False),
        ],
    }  # fmt: skip
    for why, runs in reasons.items():
        for number, run in enumerate(runs):
            assert watched(run, x, weight)[0].why == why, (why, number)


def test_memory_of_others_is_held_and_what_was_given_is_known(x):
    hidden = torch.ones(16)
    watch, output = watched(lambda: (x + hidden)[1:], x)
    assert list(watch.held) == [hidden.untyped_storage().data_ptr()]
    assert not watch.is_given(output)
    assert watch.is_given(x[2:])
    assert watch.is_given(hidden)
