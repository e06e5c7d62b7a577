"""What a profile says of kernels whose bottleneck is known beforehand, on the device."""

import re

import anyio
import pytest
from profile_cases import silent, workshop

from kernelforge_engine.builder.toolkit import ncu

pytestmark = [pytest.mark.gpu]
counted = pytest.mark.skipif(ncu() is None, reason="ncu is not installed")

MODEL = """import torch


def make_model():
    return torch.relu


def make_inputs():
    torch.manual_seed(0)
    return torch.randn(8192, 4096)
"""
BYTES = 2 * 4 * 8192 * 4096
COPY = """/* kernelforge
[[launch]]
kernel = "k"
grid = ["ceil_div(in0.numel, 1024)"]
block = [256]
args = ["in0", "out0", "i32:in0.numel / 4"]
*/
extern "C" __global__ void k(const float4* x, float4* y, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
  float4 v = x[i];
  v.x = v.x < 0.f ? 0.f : v.x;
  v.y = v.y < 0.f ? 0.f : v.y;
  v.z = v.z < 0.f ? 0.f : v.z;
  v.w = v.w < 0.f ? 0.f : v.w;
  y[i] = v;
}
"""
RELU = """/* kernelforge
[workspace.ws0]
bytes = "4096"
[[launch]]
kernel = "k"
grid = ["GRID"]
block = [256]
args = ["in0", "out0", "ws0", "i64:in0.numel"]
*/
extern "C" __global__ void BOUNDS k(const float* x, float* y, float* scratch, long long n) {
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < n; i += gridDim.x * 256ll) {
    const float v = x[i];
    CODE
    y[i] = v < 0.f ? 0.f : v;
  }
}
"""
ALL = "ceil_div(in0.numel, 256)"
# Sixty-four numbers that are all needed to the end do not fit into the 32 registers that eight
# blocks of 256 threads leave to each.
SPILLS = """float a[64], t = 0.f;
    #pragma unroll
    for (int j = 0; j < 64; ++j) a[j] = x[(i + 977 * j) % n];
    #pragma unroll
    for (int r = 0; r < 3; ++r)
      #pragma unroll
      for (int j = 0; j < 64; ++j) t += a[j] * a[(7 * j + r) % 64];
    #pragma unroll
    for (int j = 0; j < 64; ++j) t += a[j] * t;
    scratch[threadIdx.x] = t;"""
COMPUTES = """float s[8];
    #pragma unroll
    for (int j = 0; j < 8; ++j) s[j] = v + j;
    for (int r = 0; r < 64; ++r)
      #pragma unroll
      for (int j = 0; j < 8; ++j) s[j] = fmaf(s[j], 1.0001f, v);
    float t = 0.f;
    #pragma unroll
    for (int j = 0; j < 8; ++j) t += s[j];
    if (t == 0.37f) scratch[threadIdx.x] = t;"""


def source(code="", *, grid=ALL, bounds=""):
    return RELU.replace("GRID", grid).replace("BOUNDS", bounds).replace("CODE", code)


@pytest.fixture(scope="module")
async def forge(tmp_path_factory):
    async with workshop(tmp_path_factory.mktemp("profiles"), MODEL, "cuda") as found:
        yield found


async def profile_of(forge, text):
    profile = await forge.profile(text)
    (launch,) = profile.launches
    assert launch.kernel == "k"
    return profile, launch


@counted
async def test_a_copy_is_bound_by_memory_and_moves_what_it_must(forge):
    profile, launch = await profile_of(forge, COPY)
    assert profile.not_measured.keys() == {"compute_floor_us"}, profile
    assert launch.bound == "memory-bound", launch
    assert launch.bottleneck.startswith("memory-bound: device memory ran at "), launch
    assert launch.dram_peak_share >= 0.5
    assert 0.95 * BYTES < 2 * launch.dram_read_bytes < 1.2 * BYTES, launch
    assert 0 < 2 * launch.dram_write_bytes < 1.2 * BYTES, launch  # the end may lie in L2 still
    assert profile.floor.bytes == BYTES
    assert launch.duration_us > 0.8 * profile.floor.us
    assert 0 < launch.occupancy_achieved <= launch.occupancy_theoretical + 0.01
    assert (launch.spill_store_bytes, launch.spill_load_bytes) == (0, 0)
    assert launch.local_traffic_bytes == 0
    assert (launch.grid, launch.block) == ((BYTES // 8 // 1024, 1, 1), (256, 1, 1))


async def test_registers_and_memory_are_those_that_cuobjdump_reads_in_the_very_cubin(forge):
    node = await forge.node(source(COMPUTES))
    _, launch = await profile_of(forge, source(COMPUTES))
    cubin = forge.project / "artifacts" / f"{node.artifact_digest}.cubin"
    shown = (await anyio.run_process(["cuobjdump", "-res-usage", str(cubin)])).stdout.decode()
    usage = dict(re.findall(r"(REG|STACK|SHARED):(\d+)", shown.partition("Function k")[2]))
    assert launch.registers_per_thread == int(usage["REG"]), shown
    assert launch.local_bytes == int(usage["STACK"]), shown
    assert launch.static_shared_bytes == int(usage["SHARED"]), shown


@counted
async def test_a_kernel_short_of_registers_shows_its_spills(forge):
    _, launch = await profile_of(forge, source(SPILLS, bounds="__launch_bounds__(256, 8)"))
    assert launch.registers_per_thread <= 32
    assert launch.spill_store_bytes > 0 < launch.spill_load_bytes
    assert launch.local_bytes > 0 < launch.local_traffic_bytes
    assert f"spills {launch.spill_store_bytes} bytes" in launch.bottleneck


@counted
async def test_a_kernel_that_computes_long_is_bound_by_that(forge):
    _, launch = await profile_of(forge, source(COMPUTES))
    assert launch.bound == "compute-bound", launch
    assert launch.compute_peak_share > launch.dram_peak_share
    assert 0.5 < launch.vector_peak_share <= 1, launch
    assert launch.tensor_pipe_share < 0.01


@counted
async def test_a_grid_that_leaves_the_device_idle_is_named(forge):
    _, launch = await profile_of(forge, source(grid="8"))
    assert launch.bound == "latency-bound", launch
    assert launch.waves < 0.1
    assert launch.sm_active_share < 0.2
    assert "of the places for blocks" in launch.bottleneck


@counted
async def test_every_launch_of_a_plan_has_a_row_of_its_own(forge):
    twice = source().replace("[[launch]]", FIRST).replace('extern "C"', CLEARED, 1)
    first, second = (await forge.profile(twice)).launches
    assert (first.kernel, second.kernel) == ("clear<64>", "k")
    assert first.grid == (1, 1, 1)
    assert first.duration_us < second.duration_us
    assert (first.dynamic_shared_bytes, second.dynamic_shared_bytes) == (100 << 10, 0)
    assert first.occupancy_limited_by == ("shared_memory",)
    assert first.occupancy_theoretical < 0.2 < second.occupancy_theoretical


FIRST = """[[launch]]
kernel = "clear<64>"
grid = [1]
block = [64]
shared = 102400
args = ["ws0"]
[[launch]]"""
CLEARED = """template <int N> __global__ void clear(float* scratch) {
  extern __shared__ float near[];
  near[threadIdx.x] = threadIdx.x;
  __syncthreads();
  scratch[threadIdx.x] = near[N - 1 - threadIdx.x];
}
extern "C\""""


async def test_a_profile_is_kept_until_another_one_is_asked_for(forge):
    node = await forge.node(source("// kept"))
    first = await forge.engine.profile(node.id, refresh=False, notice=silent)
    assert await forge.engine.profile(node.id, refresh=False, notice=silent) == first
    assert await forge.engine.known_profile(node.id) == first
    again = await forge.engine.profile(node.id, refresh=True, notice=silent)
    assert again.binary_sha256 == first.binary_sha256
    assert again.measured_at > first.measured_at


async def test_without_leave_to_read_counters_the_rest_is_told_and_what_to_do(tmp_path):
    denied = tmp_path / "bin" / "ncu"
    denied.parent.mkdir()
    denied.write_text("#!/bin/sh\necho '==ERROR== ERR_NVGPUCTRPERM - no permission'\nexit 1\n")
    denied.chmod(0o755)
    async with workshop(tmp_path, MODEL, "cuda", denied.parent) as other:
        profile, launch = await profile_of(other, source())
    assert "ERR_NVGPUCTRPERM" in profile.not_measured["counters"]
    assert "Next: " in profile.not_measured["counters"]
    assert launch.registers_per_thread > 0 < launch.occupancy_theoretical
    assert (launch.duration_us, launch.dram_peak_share, launch.bound) == (None, None, None)
