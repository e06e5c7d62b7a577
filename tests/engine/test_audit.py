"""What the Builder refuses of cpu candidates after it built them, and what it must not refuse."""

import platform
import shutil
import sys

import pytest

from kernelforge_engine.builder import gate
from kernelforge_engine.launch.header import SourceRejected, parse_source
from kernelforge_engine.pool.child import Child
from kernelforge_engine.pool.protocol import Build, BuilderReply, BuildRefused, Built

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ here")
HEADER = "/* kernelforge\n[[launch]]\nkernel = 'k'\nargs = ['in0', 'out0', 'i64:in0.numel']\n*/\n"
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "PYTHONPATH": ":".join(p for p in sys.path if p),
}


def candidate(body="y[0] = x[0];", before="", behind=""):
    kernel = f'extern "C" void k(const float* x, float* y, long n) {{\n{body}\n}}\n'
    return f"{HEADER}{before}\n{kernel}{behind}\n"


def build(text, folder):
    launches = (("k", ("buffer", "buffer", "i64")),)
    order = Build(text=text, backend="cpu", arch="native", launches=launches, folder=str(folder))
    with Child("Builder", "kernelforge_engine.builder", environment=ENVIRONMENT) as child:
        return child.request("compile", order, BuilderReply, 100)


def refused(text, folder):
    reply = build(text, folder)
    assert isinstance(reply, BuildRefused), reply
    assert not list(folder.iterdir())
    return reply.log


def test_calls_of_the_system_are_named(tmp_path):
    text = candidate(
        'if (fopen("x", "r")) fork();', "#include <cstdio>\n#include <unistd.h>\n#include <cmath>"
    )
    assert refused(text, tmp_path) == (
        "error: it calls fopen and fork: a candidate may compute, use memory and OpenMP, and call "
        "nothing of the system"
    )


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (candidate("absent();", 'extern "C" void absent();'), "absent"),
        (candidate("if (fork) fork();", 'extern "C" __attribute__((weak)) int fork();'), "fork"),
        (candidate("y[0] = environ != nullptr;", "#include <unistd.h>"), "environ"),
        (candidate("omp_set_num_threads(64);", "#include <omp.h>"), "omp_set_num_threads"),
        (candidate("std::cout << x[0];", "#include <iostream>"), "std::cout"),
        (
            candidate(
                "other();",
                '#include <features.h>\nextern "C" { int __REDIRECT(other, (), fork); }',
            ),
            "fork",
        ),
        (
            candidate("std::thread t([] {}); t.join();", "#include <thread>"),
            "std::thread::join()",
        ),
    ],
)
def test_nothing_outside_the_list_can_be_imported(text, named, tmp_path):
    assert named in refused(text, tmp_path)


def test_many_imports_are_counted(tmp_path):
    names = [f"f{i:02}" for i in range(20)]
    text = candidate(
        "".join(f"{n}();" for n in names), "".join(f'extern "C" void {n}();' for n in names)
    )
    assert "it calls f00, f01, f02, f03, f04, f05, f06, f07 and 12 more:" in refused(text, tmp_path)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="these are instructions of x86")
@pytest.mark.parametrize(
    "line",
    [
        '#define PASTE(a, b) a##b\nvoid f() { PASTE(as, m) volatile("syscall"); }',
        '#define PASTE(a, b) a##b\nvoid f() { PASTE(__as, m__) volatile("int $0x80"); }',
        '__attribute__((section(".text.q,\\"ax\\",@progbits#"), used)) '
        "extern const int data[2] = {0x050f, 1};",
    ],
)
def test_bytes_of_a_system_call_are_refused(line, tmp_path):
    assert "the bytes of a system call" in refused(candidate(behind=line), tmp_path)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="these are instructions of x86")
@pytest.mark.skipif(shutil.which("objdump") is None, reason="no objdump here")
@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("y[0] = __rdtsc();", "rdtsc"),
        ("unsigned a; y[0] = __rdtscp(&a);", "rdtscp"),
        ("y[0] = __builtin_ia32_rdpmc(0);", "rdpmc"),
        ("unsigned a; y[0] = __builtin_ia32_rdrand32_step(&a);", "rdrand"),
    ],
)
def test_clocks_counters_and_chance_of_the_processor_are_refused(body, named, tmp_path):
    before = '#include <x86intrin.h>\n#pragma GCC target("rdrnd")'
    log = refused(candidate(body, before), tmp_path)
    assert f"it uses {named}: what it computes must not depend on time" in log


@pytest.mark.skipif(platform.machine() != "x86_64", reason="these are instructions of x86")
def test_no_data_lies_among_instructions(tmp_path):
    line = (
        '__attribute__((section(".text.q,\\"ax\\",@progbits#"), used)) '
        "extern const int data[2] = {0x310f, 0xc3};"
    )
    log = refused(candidate(behind=line), tmp_path)
    assert "it has data among its instructions (data), which is not allowed" in log


def test_sections_can_be_neither_writable_code_nor_orders_to_the_loader(tmp_path):
    form = (
        '__attribute__((section("{},\\"aw{}\\",@progbits#"), used)) unsigned long d[2] = {{6, 9}};'
    )
    log = refused(candidate(behind=form.format(".code", "x")), tmp_path)
    assert "instructions that it can overwrite" in log
    log = refused(candidate(behind=form.format(".dynamic", "")), tmp_path)
    assert "sections that the loader reads" in log


def test_the_loop_over_calls_cannot_be_given_other_functions(tmp_path):
    line = 'extern "C" void* memset(void* p, int, unsigned long) { return p; }'
    assert "it defines memset, which the system has" in refused(candidate(behind=line), tmp_path)
    line = 'extern "C" void kf_repeat(void***, const void*, long, long, long) {}'
    assert "multiple definition of `kf_repeat'" in refused(candidate(behind=line), tmp_path)


@pytest.mark.parametrize("word", ["asm", "__asm__ volatile", "__asm"])
def test_assembly_is_refused_on_the_cpu_and_allowed_on_cuda(word):
    text = candidate(f'{word}("nop");')
    assert "use intrinsics" in gate.refusal(text, "cpu")
    assert gate.refusal(text, "cuda") is None
    assert gate.refusal(candidate('const char* s = "asm"; // asm'), "cpu") is None


HONEST = """
#include <algorithm>
#include <cassert>
#include <cmath>
#include <complex>
#include <functional>
#include <immintrin.h>
#include <iostream>
#include <map>
#include <memory>
#include <omp.h>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>
static thread_local std::vector<float> scratch;
"""
BODY = """
  scratch.resize(n);
  std::map<int, int> ordered; ordered[n] = 3;
  std::unordered_map<long, float> hashed; hashed[n] = 2;
  std::function<float(float)> f = [&](float a) { return std::tgamma(a) + ordered[n] + hashed[n]; };
  auto word = std::make_shared<std::string>("n = " + std::to_string(n));
  std::complex<float> z(x[0], x[1]);
  y[0] = std::abs(std::exp(z) * z / std::complex<float>(n, 2)) + (float)((__int128)n * n / 7);
  std::stable_sort(y, y + n);
  try {
    if (n > 4) throw std::runtime_error(*word);
  } catch (const std::exception& error) { y[0] = error.what()[0]; }
  assert(n > 0);
  static const std::vector<double> table = [] { return std::vector<double>(64, std::erf(1)); }();
#pragma omp parallel
  {
#pragma omp for schedule(dynamic)
    for (long j = 0; j < n; ++j) y[j] = f(x[j]) + table[j % 64] + scratch.at(j);
#pragma omp critical
    y[0] += omp_get_thread_num();
#pragma omp barrier
#pragma omp single
    y[1] = 2;
  }
"""


def test_the_standard_library_exceptions_and_openmp_stay_usable(tmp_path):
    reply = build(candidate(BODY, HONEST), tmp_path)
    assert isinstance(reply, Built), reply
    vector = "for (long i = 0; i < n; ++i) y[i] = std::exp(x[i]);"
    reply = build(
        candidate(vector, '#include <cmath>\n#pragma GCC optimize("fast-math")'), tmp_path
    )
    assert isinstance(reply, Built), reply


KERNELS = """
// extern "C" void old(float*);
extern "C" void first(const float* x) {}
template <class T> __global__ void __launch_bounds__(256, (2 + 2)) second(const T* x) {}
extern "C" __global__ void third(float* y) {}
"""


@pytest.mark.parametrize("kernel", ["lnorm", "lnorm<float, 4>"])
def test_a_kernel_that_the_source_does_not_name_is_refused_before_any_build(kernel):
    text = HEADER.replace("'k'", f"'{kernel}'") + KERNELS
    with pytest.raises(SourceRejected) as caught:
        parse_source(text, "cpu")
    assert str(caught.value) == (
        f"launch[0].kernel '{kernel}' is not defined in the source; it defines: "
        "first, second, third"
    )
    many = HEADER + "".join(f'extern "C" void f{i}() {{}}\n' for i in range(30))
    with pytest.raises(SourceRejected, match=r"defines: f0, f1, f2, f3, f4, f5, f6, f7$"):
        parse_source(many, "cpu")


def test_kernels_that_macros_name_are_left_to_the_compiler():
    parse_source(HEADER + '#define F(x) extern "C" void k##x() {}\nF()\n', "cpu")
