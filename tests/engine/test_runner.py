"""Candidates executed by real Runner processes on real arenas."""

import dataclasses
import mmap
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from kernelforge_engine.builder import contract, gxx
from kernelforge_engine.calls import Call, OutputSpec, TensorSpec
from kernelforge_engine.launch.header import parse_source
from kernelforge_engine.launch.resolve import resolve
from kernelforge_engine.pool import frames
from kernelforge_engine.pool.child import Child, Ended
from kernelforge_engine.pool.protocol import (
    Build,
    BuilderReply,
    Built,
    Done,
    Failed,
    Load,
    Loaded,
    PrepareTiming,
    Run,
    RunnerReply,
    Sample,
    Sampled,
    Slot,
)
from kernelforge_engine.records import Artifact

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ here")

COUNT = 64
GUARD, ALIGN = 4096, 256
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "PYTHONPATH": ":".join(p for p in sys.path if p),
}


def header(*launches, more=""):
    tables = [f"[[launch]]\nkernel = {k!r}\nargs = {list(args)!r}\n" for k, *args in launches]
    return "/* kernelforge\n" + "".join(tables) + more + "*/\n"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("store")


def call_of(dtype):
    spec = TensorSpec(dtype=dtype, shape=(COUNT,), stride=(1,), device="cpu")
    return Call(
        operator="aten::scale", overload="", words=(), arguments=(),
        inputs=(spec,), outputs=(OutputSpec(tensor=spec),),
    )  # fmt: skip


def built_by_the_builder(text, launches, store):
    order = Build(text=text, backend="cpu", arch="native", launches=launches, folder=str(store))
    with Child("Builder", "kernelforge_engine.builder", environment=ENVIRONMENT) as builder:
        built = builder.request("compile", order, BuilderReply, 120)
    assert isinstance(built, Built), built
    return built.artifact


def built_unaudited(text, launches, store):
    """What the Builder would build if it refused nothing: the sandbox has to hold on its own."""
    unit = contract.unit(text, launches, "cpu", "native")
    (store / "unit.cpp").write_text(unit.text("candidate.cpp"))
    (store / "repeat.cpp").write_text(unit.beside)
    product = store / "unaudited.so"
    subprocess.run(
        ["g++", *gxx.COMPILE.split(), "-shared", "unit.cpp", "repeat.cpp", "-o", product],
        cwd=store, check=True,
    )  # fmt: skip
    return Artifact(
        digest="unaudited", backend="cpu", arch="native", path=str(product), symbols={}, compiler=""
    )


class Bench:
    """A candidate built and loaded over an arena with one input, one output and its workspaces."""

    def __init__(self, text, store, dtype="float32", threads=2, build=built_by_the_builder):
        source = parse_source(text, "cpu")
        self.plan = resolve(source.plan, call_of(dtype))
        launches = tuple(
            (each.kernel, tuple(a.kind for a in each.args)) for each in self.plan.launches
        )
        artifact = build(text, launches, store)
        self._lay_out(dtype)
        self.child = Child(
            "Runner",
            "kernelforge_engine.runner",
            environment=ENVIRONMENT,
        )
        self.order = Load(
            artifact=artifact, plan=self.plan, slots=self.slots,
            arena_bytes=len(self.memory), threads=threads,
        )  # fmt: skip

    def _lay_out(self, dtype):
        slots, offset = [], GUARD
        for buffer in self.plan.buffers:
            slots.append(Slot(offset=offset, bytes=buffer.bytes))
            offset += -(-buffer.bytes // ALIGN) * ALIGN + GUARD
        self.slots = tuple(slots)
        self.descriptor = os.memfd_create("arena")
        os.ftruncate(self.descriptor, offset)
        self.memory = mmap.mmap(self.descriptor, offset)
        everything = np.frombuffer(self.memory, np.uint8)
        everything[:] = 0xA5
        self.input, self.output, *self.scratch = (
            everything[s.offset : s.offset + s.bytes].view(dtype) for s in self.slots
        )
        self.input[:] = np.arange(COUNT)

    def load(self):
        return self.child.ask(self.order, RunnerReply, 60, descriptor=self.descriptor)

    def ask(self, message, seconds=60):
        return self.child.ask(message, RunnerReply, seconds)

    def run(self):
        assert self.ask(Run()) == Done()
        return self.output

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.kill()
        os.close(self.descriptor)


SCALE = header(("scale", "in0", "out0", "i32:in0.numel", "f32:2.5")) + (
    'extern "C" void scale(const float* x, float* y, int n, float f) {\n'
    "  for (int i = 0; i < n; ++i) y[i] = f * x[i];\n}\n"
)


def test_a_kernel_writes_its_output_and_nothing_else(store):
    with Bench(SCALE, store) as bench:
        assert isinstance(bench.load(), Loaded)
        before = bytes(bench.memory)
        np.testing.assert_array_equal(bench.run(), 2.5 * np.arange(COUNT, dtype=np.float32))
        slot = bench.slots[1]
        after = bytes(bench.memory)
        assert after[: slot.offset] == before[: slot.offset]
        assert after[slot.offset + slot.bytes :] == before[slot.offset + slot.bytes :]
        bench.input[:] = 1
        assert set(bench.run()) == {2.5}


def test_launches_run_in_order_and_scalars_keep_their_type(store):
    text = header(
        ("first<double>", "in0", "ws0", "i64:in0.numel", "f64:0.1"),
        ("second", "ws0", "out0", "i64:in0.numel", "i32:-3"),
        more='[workspace.ws0]\nbytes = "8 * in0.numel"\n',
    ) + (
        "template <class T> void first(const float* x, T* w, long n, double f) {\n"
        "  for (long i = 0; i < n; ++i) w[i] = x[i] * f;\n}\n"
        "static void second(const double* w, float* y, long long n, int k) {\n"
        "  for (long i = 0; i < n; ++i) y[i] = (float)(w[i] + k);\n}\n"
    )
    with Bench(text, store) as bench:
        bench.load()
        wanted = (np.arange(COUNT) * 0.1 - 3).astype(np.float32)
        np.testing.assert_array_equal(bench.run(), wanted)


COUNTING = header(("count", "out0", "ws0"), more=(
    '[workspace.ws0]\nbytes = 4\ninit = "zero"\n[output.out0]\ninit = "zero"\n'
)) + (
    'extern "C" void count(float* y, int* w) { y[0] += 1; y[1] = ++w[0]; }\n'
)  # fmt: skip


def test_zeroed_buffers_are_zero_before_every_call(store):
    with Bench(COUNTING, store) as bench:
        bench.load()
        bench.run()
        output = bench.run()
        assert list(output[:2]) == [1, 1]
        assert not output[2:].any()
        assert bench.ask(PrepareTiming(sets=2, calls=5)) == Done()
        bench.output[:] = 7
        assert isinstance(bench.ask(Sample()), Sampled)
        assert set(bench.output) == {7}, "timing must leave the arena alone"


def test_samples_are_positive_and_can_be_repeated_with_other_sets(store):
    with Bench(SCALE, store) as bench:
        bench.load()
        for sets, calls in ((1, 1), (3, 1000), (8, 2)):
            assert bench.ask(PrepareTiming(sets=sets, calls=calls)) == Done()
            assert all(bench.ask(Sample()).us > 0 for _ in range(3))


def test_macros_of_the_candidate_reach_neither_the_loop_over_calls_nor_the_checks(store):
    text = COUNTING + (
        "#define for if (kf_calls > 1) {} else for\n#define kf_call(f, a) kf_nothing()\n"
        "#define kf_apply(...) kf_nothing()\n#define extern static\n#define static_assert(...)\n"
    )
    with Bench(text, store) as bench:
        bench.load()
        assert bench.run()[0] == 1
        bench.ask(PrepareTiming(sets=1, calls=100_000))
        assert bench.ask(Sample()).us > 0.0005, "the calls of a sample were not executed"


def test_buffer_sets_keep_the_alignment_of_the_arena(store):
    text = header(("where", "in0", "out0")) + (
        'extern "C" void where(const float* x, float* y) {\n'
        "  if ((unsigned long)x % 256 || (unsigned long)y % 256) __builtin_trap();\n}\n"
    )
    with Bench(text, store) as bench:
        bench.load()
        bench.run()
        bench.ask(PrepareTiming(sets=5, calls=5))
        assert isinstance(bench.ask(Sample()), Sampled)


THREADS = header(("who", "out0")) + (
    "#include <omp.h>\n"
    'extern "C" void who(float* y) {\n'
    "#pragma omp parallel\n"
    "  y[omp_get_thread_num()] = omp_get_num_threads();\n}\n"
)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_openmp_kernels_use_the_threads_they_were_given_under_the_sandbox(store, threads):
    with Bench(THREADS, store, threads=threads) as bench:
        assert "seccomp" in bench.load().sandbox
        for _ in range(3):
            bench.output[:] = 0
            assert list(bench.run()[: threads + 1]) == [threads] * threads + [0]


def test_a_kernel_that_wants_more_threads_gets_those_there_are(store):
    text = THREADS.replace("omp parallel", "omp parallel num_threads(8)")
    with Bench(text, store) as bench:
        bench.load()
        bench.output[:] = 0
        assert list(bench.run()[:3]) == [2, 2, 0]


SYSTEM = """
#include <sys/syscall.h>
#include <fcntl.h>
#include <signal.h>
#include <errno.h>
extern "C" long syscall(long, ...);
extern "C" int open(const char*, int, ...);
extern "C" int getppid();
static float tried(long result) { return result < 0 ? -errno : 1; }
static float early = tried(open("/etc/passwd", O_RDONLY));
extern "C" void reads(float* y) {
  y[0] = tried(open("/etc/passwd", O_RDONLY));
  y[1] = tried(open("/proc/self/environ", O_RDONLY));
  y[2] = tried(syscall(SYS_openat, AT_FDCWD, "/", O_RDONLY | O_DIRECTORY));
  y[3] = early;
  y[4] = tried(syscall(SYS_openat, AT_FDCWD, "/tmp/kernelforge-leak", O_CREAT | O_WRONLY, 0600));
}
"""


def test_a_candidate_can_read_nothing_and_write_no_file(store):
    text = header(("reads", "out0")) + SYSTEM
    with Bench(text, store, build=built_unaudited) as bench:
        level = bench.load().sandbox
        *reads, write = list(bench.run()[:5])
    assert write < 0
    assert all(r < 0 for r in reads) or not level.startswith("landlock"), reads


@pytest.mark.parametrize(
    "call",
    [
        "SYS_socket, 2, 1, 0",
        "SYS_clone, SIGCHLD, 0, 0, 0, 0",
        "SYS_kill, getppid(), SIGKILL",
        "SYS_ptrace, 16, getppid(), 0, 0",
        'SYS_execve, "/bin/true", 0, 0',
        "SYS_io_uring_setup, 8, 0",
        "SYS_ftruncate, 3, 0",
    ],
)
def test_a_forbidden_system_call_ends_the_runner(store, call):
    attack = f'extern "C" void attack(float*) {{ syscall({call}); }}\n'
    with Bench(header(("attack", "out0")) + SYSTEM + attack, store, build=built_unaudited) as bench:
        if "lethal" not in bench.load().sandbox:
            pytest.skip("this kernel has no such filter")
        with pytest.raises(Ended) as ended:
            bench.run()
        assert ended.value.killed_by == signal.SIGSYS


MODES = """
#include <immintrin.h>
extern "C" void flush(float* y) {
#pragma omp parallel
  if (WHERE) _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
  y[0] = 1;
}
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="intrinsics of x86_64")
@pytest.mark.parametrize("where", ["omp_get_thread_num() == 0", "omp_get_thread_num() == 1"])
def test_changed_floating_point_modes_are_refused_and_do_not_outlast_the_call(store, where):
    text = header(("flush", "out0")) + "#include <omp.h>\n" + MODES.replace("WHERE", where)
    with Bench(text, store) as bench:
        bench.load()
        for _ in range(2):
            reply = bench.ask(Run())
            assert isinstance(reply, Failed)
            assert "rounds" in reply.error
            assert not reply.ours


def test_a_segmentation_fault_ends_only_its_runner(store):
    text = header(("crash", "in0")) + 'extern "C" void crash(float*) { *(volatile int*)0 = 1; }\n'
    with Bench(text, store) as bench:
        bench.load()
        with pytest.raises(Ended) as ended:
            bench.ask(Run())
        assert ended.value.killed_by == signal.SIGSEGV


def test_an_exception_of_the_candidate_aborts_its_runner_with_its_words(store):
    text = header(("throws", "in0")) + (
        "#include <stdexcept>\n"
        'extern "C" void throws(float*) { throw std::runtime_error("too odd"); }\n'
    )
    with Bench(text, store) as bench:
        bench.load()
        with pytest.raises(Ended) as ended:
            bench.ask(Run())
        assert ended.value.killed_by == signal.SIGABRT
        assert "too odd" in ended.value.words


def test_an_infinite_loop_is_killed(store):
    text = header(("spin", "in0")) + (
        'extern "C" void spin(volatile float* x) { while (true) x[0] = x[0]; }\n'
    )
    with Bench(text, store) as bench:
        bench.load()
        with pytest.raises(frames.Silent):
            bench.ask(Run(), seconds=0.5)
        assert not bench.child.alive


def test_a_symbol_that_does_not_exist_is_named(store):
    text = header(("calls", "in0")) + (
        'extern "C" void absent_function();\nextern "C" void calls(float*) { absent_function(); }\n'
    )
    with Bench(text, store, build=built_unaudited) as bench:
        reply = bench.load()
        assert isinstance(reply, Failed)
        assert reply.stage == "load"
        assert not reply.ours
        assert reply.error == "undefined symbol: absent_function"


def test_asking_before_loading_is_our_failure(store):
    with Bench(SCALE, store) as bench:
        reply = bench.ask(Run())
        assert isinstance(reply, Failed)
        assert reply.ours


def test_a_machine_without_a_driver_is_our_failure_and_no_verdict(store):
    if list(Path("/dev").glob("nvidia[0-9]*")):
        pytest.skip("there is a device here")
    with Bench(SCALE, store) as bench:
        artifact = dataclasses.replace(bench.order.artifact, backend="cuda")
        order = dataclasses.replace(bench.order, artifact=artifact)
        reply = bench.child.ask(order, RunnerReply, 60, descriptor=bench.descriptor)
        assert isinstance(reply, Failed)
        assert reply.ours
        assert "libcuda" in reply.error or "CUDA_ERROR" in reply.error
