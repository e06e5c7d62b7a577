"""What a profile says of cpu kernels, through the engine."""

import pytest
from profile_cases import silent, workshop

MODEL = """import torch


def make_model():
    return torch.add


def make_inputs():
    torch.manual_seed(0)
    return torch.randn(64, 1024), torch.randn(64, 1024)
"""
ADD = """/* kernelforge
[[launch]]
kernel = "add"
args = ["in0", "in1", "out0", "i64:in0.numel"]
*/
extern "C" void add(const float* x, const float* z, float* y, long long n) {
  for (long long i = 0; i < n; ++i) y[i] = x[i] + z[i];
}
"""


@pytest.fixture(scope="module")
async def forge(tmp_path_factory):
    async with workshop(tmp_path_factory.mktemp("profiles"), MODEL, "cpu") as found:
        yield found


async def test_the_vectors_in_the_code_of_a_cpu_kernel_are_counted(forge):
    profile = await forge.profile(ADD)
    assert profile.code.packed_arithmetic > 0
    assert profile.code.vector_bits >= 128
    assert [launch.kernel for launch in profile.launches] == ["add"]
    assert profile.floor.bytes == 3 * 4 * 64 * 1024
    assert profile.floor.bound == "memory-bound"
    assert "counters" in profile.not_measured


async def test_a_loop_on_single_numbers_is_seen_as_that(forge):
    volatile = ADD.replace("const float* z", "const volatile float* z")
    profile = await forge.profile(volatile)
    assert (profile.code.packed_arithmetic, profile.code.vector_bits) == (0, 0)
    assert profile.code.scalar_arithmetic > 0


async def test_a_profile_goes_with_the_capture_that_its_node_belongs_to(tmp_path):
    async with workshop(tmp_path, MODEL, "cpu") as forge:
        node = await forge.node(ADD)
        kept = await forge.engine.profile(node.id, refresh=False, notice=silent)
        assert await forge.engine.known_profile(node.id) == kept
        await forge.engine.delete_capture("c1", force=True)
        assert await forge.engine.known_profile(node.id) is None
