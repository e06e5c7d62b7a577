"""Builds by real compilers in real Builder processes."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kernelforge_engine.builder import gate, mangling, ptxas, toolkit
from kernelforge_engine.builder.log import readable
from kernelforge_engine.launch.header import parse_source
from kernelforge_engine.pool.child import Child
from kernelforge_engine.pool.protocol import (
    Build,
    BuilderReply,
    BuildRefused,
    Built,
    Raised,
)

PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/cuda/bin"
needs_nvrtc = pytest.mark.skipif(toolkit.nvrtc() is None, reason="no libnvrtc here")
needs_nvcc = pytest.mark.skipif(toolkit.nvcc() is None, reason="no nvcc here")


def header(*launches, sizes=""):
    tables = [
        f"[[launch]]\nkernel = {kernel!r}\n{sizes}\nargs = {list(args)!r}\n"
        for kernel, *args in launches
    ]
    return "/* kernelforge\n" + "".join(tables) + "*/\n"


def on_device(*launches):
    return header(*launches, sizes="grid = [1]\nblock = [32]")


def build(text, folder, backend="cpu", arch="native", path=PATH):
    plan = parse_source(text, backend).plan
    launches = tuple(
        (each.kernel, tuple(a.split(":")[0] if ":" in a else "buffer" for a in each.args))
        for each in plan.launches
    )
    order = Build(text=text, backend=backend, arch=arch, launches=launches, folder=str(folder))
    environment = {"PATH": path, "PYTHONPATH": ":".join(p for p in sys.path if p)}
    with Child("Builder", "kernelforge_engine.builder", environment=environment) as child:
        return child.request("compile", order, BuilderReply, 150)


def build_cuda(text, folder):
    return build(text, folder, "cuda", "sm_90")


SCALE = header(("scale", "in0", "out0", "i64:in0.numel")) + (
    'extern "C" void scale(const float* x, float* y, long n) {\n'
    "  for (long i = 0; i < n; ++i) y[i] = 2 * x[i];\n}\n"
)


def test_a_good_kernel_becomes_a_shared_object_without_an_openmp_library(tmp_path):
    code = SCALE.replace("  for", "#pragma omp parallel for\n  for")
    built = build(code, tmp_path)
    assert isinstance(built, Built), built
    assert built.seconds > 0
    assert built.artifact.symbols == {"0": "kf_launch_0"}
    assert built.artifact.path == str(tmp_path / f"{built.artifact.digest}.so")
    shown = subprocess.run(
        ["readelf", "-d", "--dyn-syms", "-W", built.artifact.path],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    needed = [line for line in shown.splitlines() if "NEEDED" in line]
    assert not any("gomp" in line for line in needed)
    assert "UND GOMP_parallel" in shown
    exported = {
        line.split()[-1] for line in shown.splitlines() if " GLOBAL DEFAULT " in line
        and " UND " not in line
    }  # fmt: skip
    assert exported == {"kf_launch_0", "kf_modes", "kf_place", "kf_repeat"}


def test_the_second_build_comes_from_the_store_even_after_the_folder_moved(tmp_path):
    first = build(SCALE, tmp_path / "a")
    (tmp_path / "a").rename(tmp_path / "b")
    second = build(SCALE, tmp_path / "b")
    assert second.seconds == 0.0
    assert second.artifact.digest == first.artifact.digest
    assert second.artifact.path == str(tmp_path / "b" / f"{first.artifact.digest}.so")
    assert len(list((tmp_path / "b").iterdir())) == 2


def test_an_artifact_without_its_metadata_is_built_again(tmp_path):
    first = build(SCALE, tmp_path)
    (tmp_path / f"{first.artifact.digest}.json").write_text('{"digest": "torn')
    assert build(SCALE, tmp_path).seconds > 0


def test_template_kernels_are_named_with_their_arguments(tmp_path):
    text = header(("fill<float, 7>", "out0"), ("fill<int, 8>", "out0")) + (
        "template <class T, int N> static void fill(T* y) { y[0] = N; }\n"
        "#define N 12\n#define T float\n"
    )
    built = build(text, tmp_path)
    assert isinstance(built, Built), built
    assert built.artifact.symbols == {"0": "kf_launch_0", "1": "kf_launch_1"}


def test_a_wrong_number_of_arguments_is_said_in_the_words_of_the_header(tmp_path):
    refused = build(SCALE.replace("'out0', ", ""), tmp_path)
    assert isinstance(refused, BuildRefused)
    first = refused.log.splitlines()[0]
    assert "launch[0].args has 2 entries, but scale has another number of parameters" in first
    assert not list(tmp_path.iterdir())


def test_wrong_kinds_are_refused_one_by_one(tmp_path):
    text = header(("k", "in0", "i32:1", "i64:1", "f32:1.0", "f64:1.0")) + (
        'extern "C" void k(long p, long a, int b, double c, float d) {}\n'
    )
    log = build(text, tmp_path).log
    assert "launch[0].args[0] is a buffer, so parameter 1 of k must be a pointer" in log
    assert "args[1] is i32, so parameter 2 of k must be an integer of 4 bytes" in log
    assert "args[2] is i64, so parameter 3 of k must be an integer of 8 bytes" in log
    assert "args[3] is f32, so parameter 4 of k must be a float" in log
    assert "args[4] is f64, so parameter 5 of k must be a double" in log


def test_errors_name_the_candidates_own_lines_and_no_folder_of_the_host(tmp_path):
    lines = SCALE.replace("2 * x[i]", "2 * q[i]").splitlines()
    log = build("\n".join(lines), tmp_path).log
    wanted = next(i for i, line in enumerate(lines, 1) if "q[i]" in line)
    assert f"candidate.cpp:{wanted}:" in log
    assert "/" not in log.replace("//", "")
    assert len(log) < 1000


def test_a_flood_of_errors_is_cut(tmp_path):
    names = " ".join(f"unknown_type_{i} v{i};" for i in range(4000))
    log = build(SCALE + names, tmp_path).log
    assert len(log) < 8300


@pytest.mark.parametrize(
    "line",
    [
        '#include "/etc/passwd"',
        '#  include "../../etc/passwd"',
        '%:include "/etc/passwd"',
        '#inc\\\nlude "/etc/passwd"',
        '/* a */ #include/**/"/etc/passwd"',
        'int a;\r#include "/etc/passwd"\r',
        '#define F "/etc/passwd"\n#include F',
        '#if __has_include("/etc/passwd")\n#endif',
        "#if __has_include(</etc/passwd>)\n#endif",
        '#define H(x) __has_include(x)\n#if H("/etc/passwd")\n#endif',
        '#define C(a,b) a##b\n#if C(__has_,include)("/etc/passwd")\n#endif',
        '#if __CONCAT(__has_,include)("/etc/passwd")\n#endif',
        '#define Z __CONCAT(__has_,include)("/etc/passwd")\n#define Y 1 && Z\n#if Y\n#endif',
        '#line 1 "/etc/passwd"',
        '# 1 "/etc/passwd"',
        '#pragma GCC dependency "/etc/passwd"',
        "int a\x00;",
    ],
)
def test_a_source_cannot_ask_about_files_of_the_host(line):
    assert gate.refusal(f"{SCALE}\n{line}\n", "cuda") is not None


@pytest.mark.parametrize(
    "line",
    [
        "#include <cuda/std/limits>",
        '#include "cuda_fp16.h"  // half',
        "#if __has_include(<omp.h>)\n#endif",
        "#define P(a, b) a##b\n#ifdef P\n#endif\n#if defined(P) && __cplusplus > 1\n#endif",
        "#define N 4\n#define M (N + 1)\n#if !defined(__CUDA_ARCH__) || (M > 3)\n#endif",
        'const char* s = "#include \\"/etc/passwd\\"";',
        "// #include </etc/passwd>\n/* #line 7 */",
        "int big = 1'000'000; char c = '\"'; // it's",
        'auto r = R"(\n#include "/etc/passwd"\n)";',
        "#define N 4\n#if N > 3\n#endif",
    ],
)
def test_ordinary_sources_pass_the_gate(line):
    assert gate.refusal(f"{SCALE}\n{line}\n", "cpu") is None


def test_assembly_cannot_pull_a_file_of_the_host_into_the_artifact(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("TOP-SECRET-TEXT")
    for target in (secret, tmp_path / "absent"):
        # Pasted together, because the gate refuses the plain word.
        pasted = "#define PASTE(a, b) a##b\nPASTE(as, m)"
        text = SCALE + f'{pasted}(".section .rodata\\n.incbin \\"{target}\\"\\n.text\\n");\n'
        reply = build(text, tmp_path / "store")
        assert isinstance(reply, BuildRefused), "no Landlock: the source could read host files"
        assert "SECRET" not in reply.log
        assert str(tmp_path) not in reply.log


def test_a_machine_without_a_compiler_is_told_what_to_install(tmp_path):
    reply = build(SCALE, tmp_path, path="/nowhere")
    assert isinstance(reply, Raised)
    assert str(reply.error()).startswith("No g++ was found for the cpu backend. Next: install")


def test_logs_are_free_of_control_characters_and_absolute_paths():
    raw = "note: x\n\x1b[31m/usr/include/c++/12/cmath:3: error: a/b: /etc/passwd: Permission denied"
    assert readable(raw) == "[31mcmath:3: error: a/b: passwd: not available\nnote: x"


def test_an_error_of_the_candidate_is_told_once_and_without_those_that_follow_from_it():
    raw = """\
candidate.cpp: In function 'void k(int)':
candidate.cpp:5:3: error: 'q' was not declared in this scope
    5 |   q;
unit.cpp:9:1: note: declared here
launch[0]:1:25: error: 'kf_types_0' has not been declared
candidate.cpp:5:3: error: 'q' was not declared in this scope
    5 |   q;
candidate.cpp:7:1: warning: unused variable 'w'
"""
    assert readable(raw) == (
        "candidate.cpp: In function 'void k(int)':\n"
        "candidate.cpp:5:3: error: 'q' was not declared in this scope\n    5 |   q;\n"
        "candidate.cpp:7:1: warning: unused variable 'w'"
    )
    alone = "launch[0]:2:33: error: static assertion failed\nlaunch[0]:2:33: note: 3 == 2"
    assert readable(alone) == alone


CUDA = (
    on_device(
        ("scale<float, 256, true>", "in0", "out0", "i32:1"), ("plain", "out0"), ("named", "out0")
    )
    + """
template <class T, int N, bool B> __global__ void scale(const T* x, T* y, int n) {
  __shared__ T s[N];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = s[N - 1 - threadIdx.x] + n + B;
}
__global__ void plain(float* y) { y[threadIdx.x] = 1; }
extern "C" __global__ void named(float* y) { y[threadIdx.x] = INFINITY; }
"""
)
SYMBOLS = {
    "scale<float, 256, true>": "_Z5scaleIfLi256ELb1EEvPKT_PS0_i",
    "plain": "_Z5plainPf",
    "named": "named",
}


@needs_nvrtc
def test_nvrtc_builds_a_cubin_and_names_every_kernel(tmp_path):
    built = build_cuda(CUDA.replace("*/", "*/\n#include <cstdint>\n#include <cmath>", 1), tmp_path)
    assert isinstance(built, Built), built
    assert built.artifact.compiler.startswith("NVRTC")
    assert built.artifact.symbols == SYMBOLS
    assert built.artifact.resources["named"]["registers"] > 0
    image = Path(built.artifact.path).read_bytes()
    assert image.startswith(b"\x7fELF")


SPILLS = (
    on_device(("spills", "in0", "i32:1"), ("plain", "in0"))
    + """
extern "C" __global__ void __launch_bounds__(256, 8) spills(float* y, int n) {
  float a[64], t = 0.f;
  #pragma unroll
  for (int j = 0; j < 64; ++j) a[j] = y[j * n];
  #pragma unroll
  for (int i = 0; i < 192; ++i) t += a[i % 64] * a[(7 * i + i / 64) % 64];
  #pragma unroll
  for (int j = 0; j < 64; ++j) y[j * n] = a[j] * t;
}
extern "C" __global__ void plain(float* y) { y[threadIdx.x] = 1; }
"""
)


@pytest.mark.skipif(not (toolkit.nvrtc() or toolkit.nvcc()), reason="no CUDA compiler here")
def test_a_build_notes_what_a_kernel_spills_and_not_in_its_log(tmp_path):
    built = build_cuda(SPILLS, tmp_path)
    assert isinstance(built, Built), built
    spilling, plain = (built.artifact.resources[name] for name in ("spills", "plain"))
    assert spilling["registers"] <= 32
    assert spilling["spill_store_bytes"] > 0 < spilling["spill_load_bytes"]
    assert (plain["spill_store_bytes"], plain["spill_load_bytes"]) == (0, 0)
    assert built.artifact.log == ""


def test_what_ptxas_says_unasked_stays_in_the_log():
    loss = "ptxas info    : (C7510) Potential Performance Loss: wgmma is serialized in 'k'\n"
    asked = "ptxas info    : Used 8 registers\nptxas         .     0 bytes stack frame, 0 bytes\n"
    assert ptxas.without(f"{asked}{loss}    8 bytes stack frame, 0 bytes spill stores\n") == loss


@needs_nvrtc
def test_nvrtc_checks_the_launch_header_too(tmp_path):
    refused = build_cuda(
        CUDA.replace("plain(float* y) { y[threadIdx.x]", "plain(int y) { y"), tmp_path
    )
    assert isinstance(refused, BuildRefused)
    assert "launch[1].args[0] is a buffer, so parameter 1 of plain must be a pointer" in refused.log


@needs_nvrtc
def test_the_second_cuda_build_comes_from_the_store(tmp_path):
    build_cuda(CUDA, tmp_path)
    assert build_cuda(CUDA, tmp_path).seconds == 0.0


@needs_nvrtc
@needs_nvcc
@pytest.mark.skipif(shutil.which("g++") is None, reason="nvcc needs g++")
def test_a_header_only_a_host_compiler_has_is_left_to_nvcc(tmp_path):
    built = build_cuda(CUDA.replace("*/", "*/\n#include <vector>", 1), tmp_path)
    assert isinstance(built, Built), built
    assert built.artifact.compiler.startswith("nvcc")
    assert built.artifact.symbols == SYMBOLS


@pytest.mark.parametrize(("kernel", "symbol"), SYMBOLS.items())
def test_symbols_are_recognised_with_and_without_a_demangler(kernel, symbol):
    environment = {"PATH": PATH}
    texts = mangling.demangled(list(SYMBOLS.values()), environment)
    for other in SYMBOLS.values():
        assert mangling.names(other, None, kernel) == (other == symbol)
        assert mangling.names(other, texts.get(other), kernel) == (other == symbol)
