"""Regions on a CUDA device: streams, graphs, and the device of the call."""

import cuda_cases
import pytest
import torch

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
ROWS, SIZE = 64, 128


@pytest.fixture
def norm(tmp_path):
    torch.manual_seed(0)
    return cuda_cases.norm_class(tmp_path)(SIZE).cuda()


@pytest.fixture
def x():
    return torch.randn(ROWS, SIZE, device="cuda")


@pytest.fixture
def cast(norm, tmp_path):
    found = cuda_cases.norms(type(norm), tmp_path, ROWS, SIZE)
    yield found
    found.disable()


def test_a_region_is_served_on_the_stream_of_its_caller(cast, norm, x):
    with torch.no_grad():
        expected = norm(x)
        with cast:
            norm(x)
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                found = norm(x)
            stream.synchronize()
        assert cast.counters().hits == 1
    assert torch.allclose(found, expected, atol=1e-5)


def test_a_region_is_recorded_into_a_graph_and_replayed(cast, norm, x):
    with torch.no_grad(), cast:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                norm(x)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = norm(x)
        assert cast.counters().hits == 3
        x.copy_(torch.randn_like(x))
        graph.replay()
        torch.cuda.synchronize()
        assert torch.allclose(found, type(norm).forward.__wrapped__(norm, x), atol=1e-5)


def test_a_first_call_in_a_capture_records_the_models_own_code(cast, norm, x):
    with torch.no_grad():
        norm(x)  # what torch has to set up for its operators
        with cast:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                found = norm(x)
            graph.replay()
            torch.cuda.synchronize()
            assert cast.counters().fallbacks == {"region::RMSNorm": {"first_call": 1}}
            norm(x)
            assert cast.counters().hits == 1
    assert torch.allclose(found, norm(x), atol=1e-5)


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_a_region_is_served_in_compiled_code(cast, norm, x):
    torch.compiler.reset()
    with torch.no_grad():
        expected = norm(x)
        with cast:
            compiled = torch.compile(norm, fullgraph=True)
            found = compiled(x)
            assert cast.counters().hits == 1
            assert torch.equal(compiled(x), found)
            served = cast.counters().hits
        without = compiled(x)
    assert cast.counters().hits == served == 2
    assert torch.allclose(found, expected, atol=1e-5)
    assert torch.allclose(without, expected, atol=1e-5)
    torch.compiler.reset()


def test_autocast_and_the_cpu_go_to_the_models_own_code(cast, norm, x):
    with torch.no_grad(), cast:
        norm(x)
        with torch.autocast("cuda", torch.bfloat16):
            norm(x)
        norm.cpu()(x.cpu())
        assert cast.counters().hits == 0
