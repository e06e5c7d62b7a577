"""Models that are replayed as CUDA graphs, on a device: the same values, in the same order."""

import gc
import threading
import weakref

import cuda_cases
import pytest
import torch

from kernelforge_engine import cast as casts

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
ROWS, SIZE = 64, 128


@pytest.fixture
def norm_class(tmp_path):
    return cuda_cases.norm_class(tmp_path)


@pytest.fixture
def model(norm_class):
    """A norm that the cast serves, between layers that it does not."""
    torch.manual_seed(0)
    layers = torch.nn.Linear(SIZE, SIZE), norm_class(SIZE), torch.nn.Dropout(0.5)
    return torch.nn.Sequential(*layers).cuda().eval().requires_grad_(False)


@pytest.fixture
def cast(norm_class, tmp_path):
    found = cuda_cases.norms(norm_class, tmp_path, ROWS, SIZE)
    yield found
    found.disable()


def sample(rows=ROWS):
    return torch.randn(rows, SIZE, device="cuda")


def graphs(cast):
    found = cast.counters().graphs
    return found.captured, found.replayed, dict(found.eager)


def patched(cast, model, given):
    """What the model answers with its kernels, without graphs."""
    with torch.no_grad():
        cast.enable(model)
        model(given[0])
        found = [model(x) for x in given]
    cast.disable()
    return found


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_replays_are_bitwise_the_patched_model_and_outputs_stay(cast, model, mode):
    given = [sample() for _ in range(4)]
    expected = patched(cast, model, given)
    hits = cast.counters().hits
    with mode():
        cast.enable(model, cuda_graph=True)
        model(given[0])
        assert cast.counters().hits > hits  # the kernel is in the graph
        found = [model(x) for x in given]
    assert graphs(cast) == (1, 4, {})
    assert all(torch.equal(f, e) for f, e in zip(found, expected, strict=True))
    assert found[0].is_inference() == (mode is torch.inference_mode)


def test_each_signature_has_its_own_graph_up_to_the_limit(cast, model):
    cast.enable(model, cuda_graph=casts.CudaGraph(limit=2))
    with torch.no_grad():
        given = [sample(rows) for rows in (64, 65, 66)]
        expected = [torch.nn.Sequential.forward(model, x) for x in given]
        for _ in range(3):
            found = [model(x) for x in given]
        assert graphs(cast) == (2, 4, {"limit": 3})
        strided = sample(2 * SIZE)[:, :SIZE].T.contiguous().T[:ROWS]
        model(strided)
    assert graphs(cast) == (2, 4, {"limit": 4})
    assert all(torch.allclose(f, e, atol=1e-5) for f, e in zip(found, expected, strict=True))


def test_without_copies_the_memory_of_the_graph_is_returned(cast, model):
    cast.enable(model, cuda_graph=casts.CudaGraph(copies=False))
    with torch.no_grad():
        model(sample())
        first = model(sample())
        second = model(sample())
    assert first.data_ptr() == second.data_ptr()


def test_a_call_that_wants_gradients_runs_as_before(cast, model):
    model.requires_grad_(True)
    cast.enable(model, cuda_graph=True)
    x = sample()
    model(x).sum().backward()
    assert model[0].weight.grad is not None
    model.requires_grad_(False)
    model(x.clone().requires_grad_()).sum().backward()
    assert graphs(cast) == (0, 0, {"autograd": 2})
    model(x)
    model(x)
    assert graphs(cast) == (1, 1, {"autograd": 2})


def test_disabling_restores_the_model_and_frees_the_graphs(cast, model):
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    x, own = sample(1 << 19), torch.nn.Sequential.__call__
    large = x.numel() * x.element_size()  # beside which the workspaces of cuBLAS are small
    before = torch.cuda.memory_allocated()
    cast.enable(model, cuda_graph=True)
    with torch.no_grad():
        for _ in range(2):
            model(x)
        assert torch.cuda.memory_allocated() >= before + 2 * large
        cast.disable()
        gc.collect()
        assert torch.cuda.memory_allocated() < before + large / 2
        assert torch.nn.Sequential.__call__ is own
        model(x)
    assert graphs(cast) == (1, 1, {})


def test_chance_is_drawn_as_without_graphs_and_differs_from_call_to_call(cast, model):
    model.train()
    x = sample()

    def drawn():
        torch.manual_seed(7)
        with torch.no_grad():
            return [model(x) for _ in range(4)] + [torch.rand(3, device="cuda")]

    cast.enable(model)
    with torch.no_grad():
        model(x)
    expected = drawn()
    cast.disable()
    cast.enable(model, cuda_graph=True)
    with torch.no_grad():
        model(x)
    found = drawn()
    assert graphs(cast) == (1, 4, {})
    assert not torch.equal(found[0], found[1])
    assert all(torch.equal(f, e) for f, e in zip(found, expected, strict=True))


def test_the_first_call_draws_once(cast, model):
    model.train()
    x = sample()
    with torch.no_grad():
        torch.manual_seed(7)
        model(x)
        expected = torch.rand(3, device="cuda")
        cast.enable(model, cuda_graph=True)
        torch.manual_seed(7)
        model(x)
        assert torch.equal(torch.rand(3, device="cuda"), expected)
    assert graphs(cast)[0] == 1


class Odd(torch.nn.Module):
    """Does one thing that no graph repeats."""

    def __init__(self, what):
        super().__init__()
        self.what, self.calls, self.kept = what, 0, []
        self.register_buffer("seen", torch.zeros(SIZE, device="cuda"))

    def forward(self, x):
        match self.what:
            case "sync":
                return x * 2 if x.sum() > 0 else x * 3
            case "host":
                return x + torch.ones(SIZE).to(x.device)
            case "writes":
                self.seen += 1
            case "attribute":
                self.calls += 1
            case "argument":
                x.add_(1)
            case "output":
                return x, x + 1
            case "capture":
                torch.cuda.synchronize()
        return torch.nn.functional.dropout(x, 0.5) + self.seen


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("sync", "sync"), ("host", "host"), ("writes", "writes"), ("attribute", "writes"),
        ("argument", "writes"), ("output", "output"), ("capture", "capture"),
    ],
)  # fmt: skip
def test_what_no_graph_repeats_runs_as_before_and_says_why(cast, what, reason):
    odd, plain, x = Odd(what), Odd(what), sample()
    cast.enable(odd, cuda_graph=True)
    with torch.no_grad():
        for _ in range(3):
            mine, other = x.clone(), x.clone()
            torch.manual_seed(0)
            found = odd(mine)
            torch.manual_seed(0)
            expected = torch.nn.Module.__call__(plain, other)
            torch.testing.assert_close(found, expected, rtol=0, atol=0)
            assert torch.equal(mine, other)
    assert torch.equal(odd.seen, plain.seen)
    assert odd.calls == plain.calls
    counters = cast.counters().graphs
    assert (counters.captured, dict(counters.eager)) == (0, {reason: 3})
    assert ("capture" in counters.why) == (what == "capture")
    torch.rand(3, device="cuda")  # a broken capture leaves the generator usable


def test_weights_that_move_are_recorded_again(cast, model):
    x = sample()
    cast.enable(model, cuda_graph=True)
    with torch.no_grad():
        model(x)
        model(x)
        model[0].weight.mul_(2)  # in place, where the graph reads it
        expected = torch.nn.Module.__call__(model, x)
        assert torch.equal(model(x), expected)
        assert graphs(cast) == (1, 2, {})
        model[0].weight.data = torch.zeros(SIZE, SIZE, device="cuda")
        model[0].bias = torch.nn.Parameter(torch.ones(SIZE, device="cuda"), requires_grad=False)
        expected = torch.nn.Module.__call__(model, x)
        assert torch.allclose(model(x), expected, atol=1e-5)
        assert torch.equal(model(x), expected)
    assert graphs(cast) == (2, 3, {})


def test_hooks_run_on_every_call(cast, model):
    x, seen = sample(), []
    cast.enable(model, cuda_graph=True)
    with torch.no_grad():
        model(x)
        handle = model[0].register_forward_hook(lambda *_: seen.append(1))
        model(x)
        model(x)
        handle.remove()
        model(x)
    assert seen == [1, 1]
    assert graphs(cast) == (1, 1, {"hooks": 2})


def test_kernels_of_another_cast_leave_the_graph_with_it(norm_class, cast, model, tmp_path):
    x = sample()
    cast.enable(model)
    (tmp_path / "o").mkdir()
    second = cuda_cases.norms(norm_class, tmp_path / "o", ROWS, SIZE)
    second.enable(model, cuda_graph=True)
    with torch.no_grad():
        model(x)
        model(x)
        cast.disable()
        hits = second.counters().hits
        model(x)
        model(x)
    assert graphs(second) == (2, 2, {})
    assert second.counters().hits > hits
    second.disable()


def test_cpu_inputs_and_a_capture_of_the_callers_own_run_as_before(cast, model):
    x = sample()
    cast.enable(model, cuda_graph=True)
    with torch.no_grad():
        expected = model(x)
        with pytest.raises(RuntimeError):
            model(x.cpu())
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = model(x)
        graph.replay()
    assert torch.allclose(found, expected, atol=1e-5)
    assert graphs(cast) == (1, 0, {"device": 1, "capturing": 1})


def test_streams_and_threads_take_turns(cast, model):
    given = [sample() for _ in range(8)]
    expected = patched(cast, model, given)
    found = {}
    cast.enable(model, cuda_graph=True)
    with torch.no_grad():
        model(given[0])
    torch.cuda.synchronize()

    def work(number):
        with torch.no_grad(), torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(20):
                found[number] = model(given[number])
            torch.cuda.current_stream().synchronize()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(len(given))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(found[n], e) for n, e in enumerate(expected))
    assert graphs(cast) == (1, 160, {})


def test_trees_of_tensors_go_in_and_come_out(cast):
    class Tree(torch.nn.Module):
        def forward(self, x, pair, *, options):
            first, second = pair
            wide = first[:1].expand(4, -1)
            return {
                "sum": [x + first, second * options["scale"]],
                "none": None,
                "wide": wide + 0 * x[:1],
            }

    tree = Tree()
    x, y = sample(), sample()
    given = (x, (y, y)), {"options": {"scale": 2.0}}
    cast.enable(tree, cuda_graph=True)
    with torch.no_grad():
        expected = torch.nn.Module.__call__(tree, *given[0], **given[1])
        for _ in range(2):
            found = tree(*given[0], **given[1])
        torch.testing.assert_close(found, expected, rtol=0, atol=0)
        narrow = x[:1].expand(ROWS, SIZE)
        for _ in range(2):
            found = tree(narrow, (y, x), options={"scale": 3.0})
        assert torch.equal(found["sum"][1], 3 * x)
        assert torch.equal(found["sum"][0], narrow + y)
    assert graphs(cast) == (2, 2, {})


TABLES = {}


class Tabled(torch.nn.Module):
    """Keeps a table of its own making where nobody sees it."""

    def forward(self, x):
        if x.shape not in TABLES:
            TABLES[x.shape] = torch.full_like(x, 3.0)
        return x * TABLES[x.shape]


def test_a_table_that_is_kept_elsewhere_is_not_freed_under_a_graph(cast):
    model, x = Tabled(), sample()
    cast.enable(model, cuda_graph=True)
    with torch.no_grad():
        model(x)
        TABLES.clear()
        other = [torch.zeros_like(x) for _ in range(8)]
        assert torch.equal(model(x), 3 * x)
    assert graphs(cast) == (1, 1, {})
    assert not any(t.any() for t in other)


def test_a_model_that_is_dropped_is_freed(cast, norm_class):
    model = torch.nn.Sequential(norm_class(SIZE)).cuda().requires_grad_(False)
    cast.enable(model, cuda_graph=True)
    with torch.no_grad():
        model(sample())
        model(sample())
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def test_autocast_has_graphs_of_its_own(cast, model):
    x = sample()
    model.requires_grad_(True)  # autocast keeps casts of such weights for a while
    cast.enable(model, cuda_graph=True)
    with torch.no_grad():
        model(x)
        with torch.autocast("cuda", torch.bfloat16):
            expected = torch.nn.Module.__call__(model, x)
            model(x)
            found = model(x)
        torch.rand(1 << 20, device="cuda")
        with torch.autocast("cuda", torch.bfloat16):
            again = model(x)
    assert torch.equal(found, expected)
    assert torch.equal(again, expected)
    assert graphs(cast) == (2, 2, {})
