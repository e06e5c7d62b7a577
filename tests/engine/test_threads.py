"""How many threads a verdict works with."""

from dataclasses import replace

import pytest
import torch

from kernelforge_engine.worker.threads import THREADS

pytestmark = pytest.mark.parametrize("forge", ["cpu"], indirect=True)


async def test_a_verdict_on_a_small_tensor_takes_one_thread_and_gives_a_candidate_all(forge):
    relu, known = forge.variants["aten::relu"], torch.get_num_threads()
    with THREADS.few_for(relu):
        assert (torch.get_num_threads(), THREADS.given) == (1, known)
    assert (torch.get_num_threads(), THREADS.given) == (known, known)


@pytest.mark.parametrize("larger", ["longer", "wider", "cuda"])
async def test_a_verdict_on_anything_else_takes_all_threads(forge, larger):
    relu, known = forge.variants["aten::relu"], torch.get_num_threads()
    (only,) = relu.call.inputs

    def on(**changes):
        return replace(relu, call=replace(relu.call, inputs=(replace(only, **changes),)))

    variant = {
        "longer": replace(relu, eager_us=2000.0),
        "wider": on(shape=(1024, 1024)),
        "cuda": on(device="cuda"),
    }[larger]
    with THREADS.few_for(variant):
        assert (torch.get_num_threads(), THREADS.given) == (known, known)
