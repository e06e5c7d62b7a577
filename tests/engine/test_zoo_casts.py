"""Models of the zoo through whole casts, in eager torch and under torch.compile.

The kernels of these casts call back into this process, to echoes; each is a source of its own,
which takes half a second to build, so that these are the models with few variants. Inductor
compiles for tens of seconds on a CPU and rounds as it fuses, so that it is tried on the smallest
two and compared with a tolerance; the graphs of the others run in eager operators and give the
same bits.
"""

import sys
from pathlib import Path

import cast_cases
import pytest
import torch
from zoo_cases import Echo, order_of, same, seen

from kernelforge_engine import cast as casts
from kernelforge_engine.cast import manifest
from kernelforge_engine.codec import sha256
from kernelforge_engine.dispatch import shim as shim_module
from kernelforge_engine.worker.drift import drift, tensors_of
from kernelforge_engine.worker.load import load

pytestmark = pytest.mark.filterwarnings("ignore")  # what the models import warns of its own future

MODELS = (
    "plain-transformer_decoder", "plain-time_series", "plain-autocast", "vision-resnet",
    "diffusion-autoencoder",
)  # fmt: skip
CACHE = Path.home() / ".cache" / "kernelforge"
SMALLEST = ("plain-autocast", "plain-time_series")


def text_of(echo):
    """A source that hands the buffers of a call to an echo."""
    names = [f"{'in' if b.role == 'input' else 'out'}{b.index}" for b in echo.plan.buffers]
    given = ", ".join(f"void* {name}" for name in names)
    places = ", ".join(f"&{name}" for name in names)
    return f"""/* kernelforge
[[launch]]
kernel = "k"
args = [{", ".join(f'"{name}"' for name in names)}]
*/
extern "C" void k({given}) {{
  void* places[] = {{{places}}};
  reinterpret_cast<void (*)(void**)>({echo.address}ull)(places);
}}
"""


@pytest.fixture(scope="module", params=MODELS)
def case(request, tmp_path_factory):
    """A model and a cast of all its calls; the echoes live as long."""
    threads, path = torch.get_num_threads(), sys.path[:]
    torch.set_num_threads(1)
    model = load(order_of(request.param))
    model.run()
    echoes = [Echo(call) for call in seen(model.run).calls.values()]
    texts = [text_of(echo) for echo in echoes]
    entries = [
        cast_cases.entry(text, echo.call, node=f"n{i}", speedup=None)
        for i, (text, echo) in enumerate(zip(texts, echoes, strict=True))
    ]
    folder = tmp_path_factory.mktemp("zoo")
    file = folder / "x.cast"
    sources = {sha256(text): text for text in texts}
    manifest.write(file, cast_cases.header(), entries, sources=sources, binaries={})
    shim_module.load(CACHE)
    cast = casts.load(file, cache=folder)  # what calls into this process is of no use to another
    assert {s.inactive for s in cast.counters().served} == {None}
    yield request.param, model, cast, echoes
    cast.disable()
    torch.set_num_threads(threads)
    sys.path[:] = path


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_a_model_with_a_cast_gives_the_same_bits(case, context):
    _, model, cast, _ = case
    with context():
        expected = tensors_of(model.run())
        before = cast.counters().hits
        with cast:
            found = tensors_of(model.run())
    assert same(found, expected)
    assert cast.counters().hits >= before + len(cast.counters().served)


@pytest.mark.timeout(300)
def test_a_compiled_model_with_a_cast(case):
    name, model, cast, _ = case
    backend = "inductor" if name in SMALLEST else "eager"
    torch.compiler.reset()
    expected = model.run()
    with torch.no_grad(), cast:
        before = cast.counters().hits
        compiled = torch.compile(model.model, backend=backend, dynamic=False)
        found = [compiled(*args, **kwargs) for args, kwargs in model.fresh()]
        hits = cast.counters().hits - before
    torch.compiler.reset()
    assert hits > 0
    if backend == "eager":
        assert same(tensors_of(found), tensors_of(expected))
    assert drift(expected, found)[1] < 1e-4
