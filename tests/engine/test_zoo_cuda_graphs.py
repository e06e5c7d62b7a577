"""Models of the zoo in a CUDA graph, with kernels that stand in for all that a guard covers: each
writes what its operator returned, call by call, also in the replays of the graph."""

import sys
from collections import defaultdict
from pathlib import Path

import pytest
import torch
from zoo_cases import Seen, flat, order_of, seen

from kernelforge_engine.dispatch import shim as shim_module
from kernelforge_engine.launch.resolve import buffer_sizes
from kernelforge_engine.plans import ResolvedArgument, ResolvedLaunch, ResolvedPlan
from kernelforge_engine.pool.child import Child
from kernelforge_engine.pool.protocol import Build, BuilderReply
from kernelforge_engine.worker.drift import tensors_of
from kernelforge_engine.worker.load import load
from kernelforge_server import settings

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore")]

CACHE = Path.home() / ".cache" / "kernelforge"
# They wait for the device nowhere, without which no model can be captured.
MODELS = (
    "vision-resnet", "vision-regnet", "vision-convnext", "vision-vit", "vision-mobilenet_v2",
    "plain-transformer_decoder",
)  # fmt: skip
# transformers makes a mask for attention only while a graph is captured: it is another call then.
MASKED_IN_CAPTURES = {("vision-vit", "aten::scaled_dot_product_attention")}
KINDS = ("buffer", "i64", "i64", "i64", "i64")
COPY = """/* kernelforge
[[launch]]
kernel = "copy"
grid = [1]
block = [1024]
args = ["out0", "i64:0", "i64:0", "i64:0", "i64:0"]
*/
extern "C" __global__ void copy(unsigned char* to, long long from, long long bytes,
                                long long runs, long long turn) {
  const long long run = *(const long long*)turn;
  const unsigned char* source = (const unsigned char*)from + run * bytes;
  for (long long i = threadIdx.x; i < bytes; i += blockDim.x) to[i] = source[i];
  __syncthreads();
  if (threadIdx.x == 0) *(long long*)turn = (run + 1) % runs;
}
"""


class Recorded(Seen):
    """Keeps the bytes that each call returned."""

    def __init__(self):
        super().__init__()
        self.bytes = defaultdict(list)

    def returned(self, key, call, out):
        tensors = torch.utils._pytree.tree_leaves(flat(out))
        self.bytes[key].append(
            [held(tensor, o.tensor) for tensor, o in zip(tensors, call.outputs, strict=True)]
        )


def held(tensor, spec):
    """A copy of every byte from the first element to the last."""
    line = tensor.as_strided((spec.extent,), (1,), tensor.storage_offset())
    return line.clone().view(torch.uint8)


@pytest.fixture(scope="module")
def shim():
    return shim_module.load(CACHE)


@pytest.fixture(scope="module")
def code(shim, tmp_path_factory):
    """The copying kernel on the current device."""
    folder = tmp_path_factory.mktemp("copy")
    order = Build(
        text=COPY,
        backend="cuda",
        arch="sm_{}{}".format(*torch.cuda.get_device_capability()),
        launches=(("copy", KINDS),),
        folder=str(folder),
    )
    environment = settings.resolve(folder).environment
    with Child("Builder", "kernelforge_engine.builder", environment=environment) as builder:
        artifact = builder.request("compile a test", order, BuilderReply, 180.0).artifact
    image = Path(artifact.path).read_bytes()
    return shim.device_code(image, artifact.symbols, [torch.cuda.current_device()])


def stand_in(call, runs):
    """A plan that writes what was recorded, one run after the other, and what it reads from."""
    buffers = tuple(buffer_sizes(call))
    fresh = iter([i for i, b in enumerate(buffers) if b.role == "output"])
    kept, launches = [], []
    for number, output in enumerate(call.outputs):
        place = next(fresh) if output.alias is None else output.alias
        source = torch.cat([run[number] for run in runs])
        turn = torch.zeros(1, dtype=torch.int64, device="cuda")
        kept += [source, turn]
        numbers = (source.data_ptr(), output.tensor.extent_bytes, len(runs), turn.data_ptr())
        arguments = (
            ResolvedArgument(kind="buffer", value=place),
            *(ResolvedArgument(kind="i64", value=value) for value in numbers),
        )
        launch = ResolvedLaunch(
            kernel="copy", args=arguments, grid=(1, 1, 1), block=(1024, 1, 1), shared=0
        )
        launches += [launch] if output.tensor.extent else []
    return ResolvedPlan(buffers=buffers, launches=tuple(launches)), kept


@pytest.mark.parametrize("name", MODELS)
def test_a_captured_model_replays_what_its_kernels_write(name, shim, code, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])  # loading a model puts its folder there
    model, graph, expected = load(order_of(name, "cuda")), torch.cuda.CUDAGraph(), []
    inputs = model.fresh()

    def run():
        return [model.model(*args, **kwargs) for args, kwargs in inputs]

    model.run()
    recorded = seen(lambda: expected.extend(tensors_of(run())), Recorded())
    plans = {k: stand_in(call, recorded.bytes[k]) for k, call in recorded.calls.items()}
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    handles = {k: shim.add(call, plans[k][0], code) for k, call in recorded.calls.items()}
    try:
        with torch.no_grad():
            with torch.cuda.stream(side):
                run()
            torch.cuda.current_stream().wait_stream(side)
            torch.cuda.synchronize()
            with torch.cuda.graph(graph):
                found = tensors_of(run())
        hits = {k: shim.hits(handle) for k, handle in handles.items()}
    finally:
        for handle in handles.values():
            shim.remove(handle)
    runs = {key: 1 if (name, key[0]) in MASKED_IN_CAPTURES else 2 for key in hits}
    assert hits == {key: runs[key] * n for key, n in recorded.counts.items()}
    for _ in range(3):
        graph.replay()
        torch.cuda.synchronize()
        assert all(map(torch.equal, found, expected))
