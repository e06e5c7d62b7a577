"""What enabling a cast with regions leaves of a model: nothing, before, while and after."""

import copy
import gc
import inspect
import io
import pickle
import sys
import types
import weakref

import pytest
import region_cases
import torch

from kernelforge_engine import cast as casts

ROWS, SIZE = 6, 16


@pytest.fixture
def path(code, x, tmp_path):
    """A cast of a norm and of a function."""
    norm = region_cases.call_of(code.RMSNorm(), hidden_states=x)
    rotate = region_cases.call_of(code.rotate, q=x, cos=x + 1, sin=x + 2)
    return region_cases.write(
        tmp_path / "model.cast", (norm, region_cases.RMS), (rotate, region_cases.ROTATE)
    )


@pytest.fixture
def cast(path):
    found = casts.load(path)
    yield found
    found.disable()


def saved(model):
    buffer = io.BytesIO()
    torch.save(model, buffer)
    return len(buffer.getvalue())


def seen(model):
    """All that could show that something was swapped."""
    return (
        [{n: id(v) for n, v in vars(m).items()} for m in model.modules()],
        list(model.state_dict()),
        len(pickle.dumps(model)),
        saved(model),
        [type(m) for m in model.modules()],
        [str(inspect.signature(m.forward)) for m in model.modules()],
        inspect.getsource(type(model.norm).forward),
    )


def test_a_model_looks_the_same_before_while_and_after(cast, code, x):
    model = code.Model().eval()
    forward, rotate, before = code.RMSNorm.forward, code.rotate, seen(model)
    with torch.no_grad():
        with cast:
            model(x)
            model(x)
            assert seen(model) == before
            assert code.RMSNorm.forward is not forward
            assert code.rotate is not rotate
            assert pickle.loads(pickle.dumps(code.rotate)) is code.rotate
        assert cast.counters().hits == 3
    assert seen(model) == before
    assert code.RMSNorm.forward is forward
    assert vars(code.RMSNorm)["forward"] is forward
    assert code.rotate is rotate


def test_copies_that_are_made_while_enabled_are_served_for_themselves(cast, code, x):
    model = code.Model().eval()
    with torch.no_grad(), cast:
        expected = model(x)
        model(x)
        twins = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
        for twin in twins:
            twin.norm.weight.zero_()
            twin.last.weight.fill_(1.0)
            assert not torch.allclose(twin(x), expected, atol=1e-3)
            assert not torch.allclose(twin(x), expected, atol=1e-3)
        assert torch.allclose(model(x), expected, atol=1e-4)
    assert "forward" not in vars(twins[0].norm)


def test_what_was_recorded_holds_while_the_module_is_the_same(cast, code, x):
    norm, original = code.RMSNorm(), code.RMSNorm.forward

    def enabled():
        with torch.no_grad(), cast:
            found = norm(x), norm(x)
        return all(torch.allclose(f, original(norm, x), atol=1e-6) for f in found)

    assert enabled()
    assert enabled()
    counters = cast.counters()
    assert (counters.hits, counters.fallbacks) == (3, {"region::RMSNorm": {"first_call": 1}})
    norm.weight = torch.nn.Parameter(torch.zeros(SIZE))
    assert enabled()
    norm.eval()
    assert enabled()
    assert cast.counters().fallbacks == {"region::RMSNorm": {"first_call": 3}}
    norm.stride = (1, (2, "same"))  # which nobody can change
    assert enabled()
    assert enabled()
    assert cast.counters().fallbacks == {"region::RMSNorm": {"first_call": 4}}
    norm.stride = (1, (True + 1.0, "same"))
    assert enabled()
    norm.elsewhere = []  # which could be any other list once it is gone
    assert enabled()
    assert enabled()
    assert cast.counters().fallbacks == {"region::RMSNorm": {"first_call": 7}}


def test_an_inherited_forward_is_inherited_again(code, x, tmp_path):
    kind = type("Child", (code.RMSNorm,), {"__module__": code.__name__})
    code.Child = kind
    call = region_cases.call_of(kind(), hidden_states=x)
    with (
        torch.no_grad(),
        casts.load(region_cases.write(tmp_path / "c.cast", (call, region_cases.RMS))) as cast,
    ):
        child, parent = kind(), code.RMSNorm()
        for _ in range(2):
            child(x)
            parent(x)
        assert cast.counters().hits == 1
        assert "forward" in vars(kind)
    assert "forward" not in vars(kind)


def test_a_forward_that_somebody_replaced_meanwhile_stays(cast, code, x):
    norm, original = code.RMSNorm(), code.RMSNorm.forward
    with torch.no_grad():
        with cast:
            norm(x)
            norm(x)
            held = code.RMSNorm.forward
            code.RMSNorm.forward = lambda self, t: held(self, t) + 1
        assert torch.equal(norm(x), original(norm, x) + 1)
        with cast:
            norm(x)
            norm(x)
            assert torch.equal(norm(x), original(norm, x) + 1)
        assert cast.counters().hits == 1


def test_a_function_is_replaced_in_every_module_that_holds_it(cast, code, x):
    other = types.ModuleType("another_region_module")
    other.turned, original = code.rotate, code.rotate
    sys.modules[other.__name__] = other
    try:
        with torch.no_grad(), cast:
            other.turned(x, x.cos(), x.sin())
            code.rotate(x, x.cos(), sin=x.sin())
            assert cast.counters().hits == 1
            other.taken = other.turned
        assert (other.turned, other.taken, code.rotate) == (original,) * 3
    finally:
        del sys.modules[other.__name__]


def test_only_the_modules_of_the_given_models_are_served(cast, code, x):
    first, second, third = (code.RMSNorm() for _ in range(3))
    with torch.no_grad():
        assert cast.enable(first) is first
        for norm in (first, second) * 2:
            norm(x)
        assert cast.counters().hits == 1
        assert cast.counters().fallbacks == {"region::RMSNorm": {"first_call": 1}}
        cast.enable(torch.nn.Sequential(second))
        for norm in (first, second, third) * 2:
            norm(x)
        assert cast.counters().hits == 4
        cast.enable()
        for norm in (first, second, third) * 2:
            norm(x)
        assert cast.counters().hits == 9
        cast.disable()
        cast.enable(third)
        for norm in (first, second, third) * 2:
            norm(x)
        assert cast.counters().hits == 11


def test_a_region_that_is_not_here_is_inactive_until_it_is(path, code, x):
    kinds = {name: vars(code).pop(name) for name in ("RMSNorm", "Louder", "Model", "rotate")}
    cast = casts.load(path)
    for kind in torch.nn.Module.__subclasses__():  # what torch keeps of other tests among them
        if (kind.__module__, kind.__name__) == ("region_model", "RMSNorm"):
            kind.__name__ = "Other"
    with cast:
        told = [s.inactive for s in cast.counters().served]
    assert told == [
        "region: region_model.RMSNorm is not loaded in this process",
        "region: region_model.rotate is not loaded in this process",
    ]
    kinds["RMSNorm"].__name__ = "RMSNorm"
    with cast, torch.no_grad():
        norm = kinds["RMSNorm"]()
        norm(x)
        norm(x)
        assert [s.inactive is None for s in cast.counters().served] == [True, False]
    assert cast.counters().hits == 1


def test_a_model_from_another_module_is_found_by_its_name(path, code, x, tmp_path):
    elsewhere = region_cases.model_code(tmp_path, "another_name")
    del sys.modules["region_model"], code.RMSNorm
    sys.modules["region_model"] = code
    cast = casts.load(path)
    norm = cast.enable(elsewhere.RMSNorm())
    with torch.no_grad():
        norm(x)
        norm(x)
    assert cast.counters().hits == 1
    cast.disable()
    del sys.modules["another_name"]


def test_two_casts_serve_one_region_the_newest_first(path, code, x):
    first, second, norm = casts.load(path), casts.load(path), code.RMSNorm()
    original = code.RMSNorm.forward
    with torch.no_grad():
        with first:
            norm(x)
            norm(x)
            with second:
                norm(x)
                norm(x)
                assert (first.counters().hits, second.counters().hits) == (1, 1)
            norm(x)
            norm(x)
        assert (first.counters().hits, second.counters().hits) == (3, 1)
        second.enable()
        first.enable()
        second.disable()
        norm(x)
        norm(x)
        assert (first.counters().hits, second.counters().hits) == (5, 1)
        first.disable()
    assert code.RMSNorm.forward is original


def test_a_model_that_is_dropped_is_freed(cast, code, x):
    model = code.Model().eval()
    model.norm.held = model.norm.forward  # refers to the module that holds it
    gone = weakref.ref(model.norm)
    with torch.no_grad():
        with cast:
            model(x)
            model(x)
        del model
        gc.collect()
        assert gone() is None
        with cast:
            for _ in range(20):
                norm = code.RMSNorm()
                norm(x)
                norm(x)
    assert cast.counters().hits == 23


def test_what_was_counted_stays_when_a_class_is_gone(cast, code, x, tmp_path):
    elsewhere = region_cases.model_code(tmp_path, "gone_name")
    del sys.modules["gone_name"]
    with torch.no_grad():
        cast.enable(elsewhere.RMSNorm())
        norm = cast.enable(elsewhere.RMSNorm())
        norm(x)
        cast.disable()
        other = code.RMSNorm()
        cast.enable(other)
        other(x)
        del norm, elsewhere
        gc.collect()
        assert cast.counters().fallbacks == {"region::RMSNorm": {"first_call": 2}}


def test_the_kill_switch_leaves_regions_alone(path, code, x, monkeypatch):
    monkeypatch.setenv("KERNELFORGE_DISABLE", "1")
    original = code.RMSNorm.forward
    with torch.no_grad(), casts.load(path) as cast:
        cast.enable(code.RMSNorm())
        assert code.RMSNorm.forward is original
        assert cast.counters().hits == 0


def test_a_default_device_is_no_reason_to_fall_back(cast, code, x):
    norm = code.RMSNorm()
    with torch.no_grad(), cast, torch.device("cpu"):
        norm(x)
        norm(x)
    with torch.no_grad(), cast, torch.device("meta"):
        norm(x)
        norm(x)
    assert cast.counters().hits == 1
    assert cast.counters().fallbacks["region::RMSNorm"]["key_set"] == 2


def test_an_instance_whose_attributes_keep_changing_costs_little_and_stays_right(cast, code, x):
    norm = code.RMSNorm()
    with torch.no_grad(), cast:
        for step in range(200):
            norm.variance_epsilon = 1e-6 if step % 2 else 10.0**-6
            norm(x)
            norm.training = not norm.training
        changing = cast.counters().fallbacks["region::RMSNorm"]
        assert changing["changing"] > 50
        norm.variance_epsilon = 5.0
        assert torch.equal(norm(x), type(norm).forward.__wrapped__(norm, x))
