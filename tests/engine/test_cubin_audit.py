"""What the Builder refuses of CUDA candidates after it built them, and what it must not refuse."""

import sys

import pytest

from kernelforge_engine.builder import ptx, toolkit
from kernelforge_engine.pool.child import Child
from kernelforge_engine.pool.protocol import Build, BuilderReply, BuildRefused, Built

pytestmark = pytest.mark.skipif(
    toolkit.nvrtc() is None and toolkit.nvcc() is None, reason="no CUDA compiler here"
)
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/cuda/bin"
KERNEL = 'extern "C" __global__ void k(float* y) {{ {body} }}\n'


def build(body, folder, before=""):
    text = f"{before}\n{KERNEL.format(body=body)}"
    launches = (("k", ("buffer",)),)
    order = Build(text=text, backend="cuda", arch="sm_90", launches=launches, folder=str(folder))
    environment = {"PATH": PATH, "PYTHONPATH": ":".join(p for p in sys.path if p)}
    with Child("Builder", "kernelforge_engine.builder", environment=environment) as child:
        return child.request("compile", order, BuilderReply, 150)


def refused(body, folder, before=""):
    reply = build(body, folder, before)
    assert isinstance(reply, BuildRefused), reply
    assert not list(folder.iterdir())
    return reply.log


COUNTER = "__device__ unsigned c;"
KEPT = [
    ("c = c + 1; y[0] = c;", COUNTER),
    ("atomicAdd(&c, 1); y[0] = c;", COUNTER),
    ("static int calls; y[0] = ++calls;", ""),
    ("y[0] = ++c;", "__managed__ int c = 4;"),
    ("atomicAdd((int*)&c[(int)y[0] & 1], 1); y[0] = c[(int)y[1] & 1];",
     "static __device__ const int c[2] = {1, 2};"),
    ("unsigned* p = at[(int)y[0] & 1]; y[0] = ++*p;",
     f"{COUNTER} __device__ unsigned* const at[2] = {{&c, &c}};"),
    ("__shared__ unsigned* volatile s; s = &c; __syncthreads(); y[0] = ++*s;", COUNTER),
    ("y[0] = up(&c);", f"{COUNTER} __noinline__ __device__ int up(unsigned* p) {{ return ++*p; }}"),
    ("unsigned long long a = (unsigned long long)&c, b = 0; for (int i = 0; i < 64; ++i) {"
     "volatile bool set = a >> i & 1; if (set) b |= 1ull << i; } y[0] = ++*(unsigned*)b;", COUNTER),
    ('asm volatile("{.global .u32 c; .reg .u32 r; atom.global.add.u32 r, [c], 1; '
     'st.global.u32 [%0], r;}" : : "l"(y));', ""),
    ('c = 2; asm volatile("{.reg .pred p; setp.eq.u32 p, 1, 1; @p st .global .u32 [c], 1;}");',
     COUNTER),
    ('asm volatile("red.global.add.u32 [c] /* \\" */ , 1;"); y[0] = c;', COUNTER),
]  # fmt: skip


@pytest.mark.parametrize(("body", "before"), KEPT)
def test_a_variable_that_a_kernel_may_write_is_refused(body, before, tmp_path):
    log = refused(body, tmp_path, before)
    assert "or passes the address on: a kernel keeps nothing between calls" in log


TABLES = """
#include <cassert>
static __device__ const float a[4] = {1, 2, 3, 4};
__device__ float b[4] = {1, 2, 3, 4};
__constant__ float c[4] = {1, 2, 3, 4};
__device__ const float* const at[2] = {a, b};
__device__ float one(float v) { return v; }
__device__ float two(float v) { return 2 * v; }
__device__ float (*const f[2])(float) = {one, two};
"""
READ = """
  static const float d[4] = {1, 2, 3, 4};
  static constexpr int e[4] = {1, 2, 3, 4};
  const char* words = "abc";
  const int i = threadIdx.x & 3;
  const float* t = y[0] > 0 ? a : b;
  float s[4];
  memcpy(s, a + i, 16);
  __shared__ float h[32];
  h[threadIdx.x] = y[i];
  __syncthreads();
  double sine, cosine;
  sincos((double)h[31], &sine, &cosine);
  assert(y[1] > 0);
  y[0] = a[i] + b[i] * c[i] + d[i] - e[i] * words[i] + t[i] + __ldg(t + i) + s[0] * s[3];
  y[1] = at[i & 1][i] + f[i & 1](y[i]) + sine * cosine * tgamma(y[2]) / pow(y[3], y[4]);
"""


BARRIER = """
#include <cuda/barrier>
"""
WAIT = """
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  if (threadIdx.x == 0) init(&bar, blockDim.x);
  __syncthreads();
  bar.arrive_and_wait();
"""
NOW = "y[0] = cuda::std::chrono::high_resolution_clock::now().time_since_epoch().count();"
FORGED = (
    '"// end inline asm\\n.loc 4 65 5, function_name $L__info_string6, inlined_at 4 65 5\\n'
    '// begin inline asm\\nmov.u64 %0, %%globaltimer;"'
)


@pytest.mark.parametrize(
    ("body", "reads"),
    [
        (f"{WAIT} y[0] = 1;", False),
        (f"{WAIT} {NOW}", True),
        (f'{WAIT} long long t; asm volatile({FORGED} : "=l"(t)); y[0] = t;', True),
    ],
)
def test_a_barrier_may_wait_by_a_clock_and_nobody_else(body, reads, tmp_path):
    reply = build(body, tmp_path, BARRIER)
    if isinstance(reply, BuildRefused) and "open source file" in reply.log:
        pytest.skip("CUDA's own headers are not here")
    assert isinstance(reply, BuildRefused) == reads, reply
    assert not reads or "it reads a clock (%globaltimer)" in reply.log


def test_tables_texts_and_mathematics_stay_usable(tmp_path):
    reply = build(READ, tmp_path, TABLES)
    assert isinstance(reply, Built), reply


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ('printf("%f", y[0]);', "vprintf"),
        ("float* p = (float*)malloc(64); p[0] = 1; y[0] = p[threadIdx.x];", "malloc"),
        ("float* p = new float[4]; p[0] = 1; y[0] = p[threadIdx.x];", "malloc"),
        ("free(y);", "free"),
    ],
)
def test_the_device_runtime_cannot_be_called(body, name, tmp_path):
    log = refused(body, tmp_path, "#include <cstdio>")
    assert f"it calls {name}: a kernel may not print, take memory from the heap" in log


@pytest.mark.parametrize(
    ("body", "before"),
    [
        ("y[0] = sgemm(y);", 'extern "C" __device__ int sgemm(float*);'),
        ("other<<<1, 1>>>(y);", "__global__ void other(float* y) { y[0] = 1; }"),
        ("cudaMemcpyAsync(y, y, 4, cudaMemcpyDeviceToDevice, 0);", ""),
        ('asm volatile("{.reg .u64 %%d; call (%%d), sgemm, ();}" : : "l"(y));', ""),
    ],
)
def test_a_kernel_can_hand_its_work_to_nobody(body, before, tmp_path):
    refused(body, tmp_path, before)


def test_what_a_cubin_holds_is_recorded(tmp_path):
    before = "#include <cassert>\n__global__ void other(float* y) { y[0] = 1; }"
    audit = build("y[0] = 2;", tmp_path, before).artifact.audit
    assert audit["imports"] == []
    assert "k" in audit["kernels"]


def register(name, kind="u32", code="r"):
    number = "unsigned" if kind == "u32" else "unsigned long long"
    return f'{number} a; asm volatile("mov.{kind} %0, %%{name};" : "={code}"(a)); y[0] = a;'


@pytest.mark.parametrize(
    "body",
    [
        "y[0] = clock();",
        "y[0] = clock64();",
        register("globaltimer", "u64", "l"),
        register("clock").replace("mov.u32 %0", "mov.u32/*;*/ %0 // ;\\n"),
        register("clock").replace('"mov', '".pragma \\"/*\\"; mov'),
        register("clock")
        .replace("mov", "{ .reg .u32 %%clock; mov.u32 %%clock, 3; mov", 1)
        .replace('%%clock;"', '%%clock; }"'),
    ],
)
def test_a_clock_cannot_be_read(body, tmp_path):
    assert "it reads a clock (%" in refused(body, tmp_path)


@pytest.mark.parametrize(
    ("name", "kind", "code"),
    [("gridid", "u64", "l"), ("current_graph_exec", "u64", "l"), ("pm0", "u32", "r"),
     ("envreg0", "u32", "r")],
)  # fmt: skip
def test_a_kernel_cannot_ask_which_launch_it_is(name, kind, code, tmp_path):
    log = refused(register(name, kind, code), tmp_path)
    assert f"it reads %{name}: what it computes must not depend on which launch it is" in log


def test_a_kernel_may_ask_where_it_runs_and_wait_for_the_whole_grid(tmp_path):
    before = "#include <cooperative_groups.h>\n"
    body = f"cooperative_groups::this_grid().sync(); {register('smid')}"
    reply = build(body, tmp_path, before)
    if isinstance(reply, BuildRefused) and "this header is not installed" in reply.log:
        reply = build(register("smid"), tmp_path)
    assert isinstance(reply, Built), reply


MODULE = """
.version 9.0
.target sm_90a
.address_size 64
.extern .func __assertfail (.param .b64 p);
.global .align 4 .u32 c;
.global .align 8 .u64 at[1] = {generic(c)};
.visible .entry k(.param .u64 p) {
  .reg .b32 %r<3>; .reg .b64 %rd<4>;
  .loc 1 2 3, function_name $L__info_string0, inlined_at 1 2 3
  mov.u64 %rd1, c;
$L__BB0_1:
  BODY
  ret;
}
"""


@pytest.mark.parametrize(
    ("body", "written"),
    [
        ("ld.global.u32 %r1, [%rd1+4]; st.global.u32 [%rd2], %r1;", ()),
        ("add.s64 %rd3, %rd2, 8; st.global.u32 [%rd3], 1; mov.u64 %rd2, %rd1;", ("c",)),
        ("ld.global.u64 %rd2, [at]; st.u32 [%rd2], 1;", ("c",)),
        ("st.param.b64 [q], %rd1; call __assertfail, (q);", ()),
        ("st.param.b64 [q], %rd1; call other, (q);", ("c",)),
        ("st.param.b64 [retval0], %rd1;", ("c",)),
        (".loc 1 1 1 st.global.u32 [c], 1;", ("c",)),
        ("{ { @!%p1 st.global.u32 [c], 1; } }", ("c",)),
        ("st.local.u64 [%rd2], %rd1;", ("c",)),
    ],
)
def test_addresses_are_followed_through_registers(body, written):
    found = ptx.findings(MODULE.replace("BODY", body), frozenset({"__assertfail"}))
    assert found == ptx.Findings(special=() if "%p1" not in body else ("%p1",), written=written)
