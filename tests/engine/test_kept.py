"""Cpu candidates that keep something between their calls, and idioms that only look like it."""

from string import Template

import pytest

from kernelforge_engine.records import Status

pytestmark = pytest.mark.parametrize("forge", ["cpu"], indirect=True)
MODEL = """
import torch


def make_model():
    return torch.nn.ReLU()


def make_inputs():
    torch.manual_seed(0)
    return torch.randn(48, 64)
"""
SOURCE = Template("""/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <omp.h>
#include <string>
#include <vector>
$before
extern "C" void k(const float* x, float* y, long n) {
  bool bad = false;
  $body
  for (long i = 0; i < n; ++i) y[i] = x[i] < 0.f ? 0.f : x[i];
  if (bad) y[0] += 1.f;
}
""")


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("model") / "model.py"
    file.write_text(MODEL)
    return file


async def judged(forge, body, before):
    text = SOURCE.substitute(body=body, before=before)
    return (await forge.submit("aten::relu", text, tier="quick")).verdict


LATE = "bad = {} % 1009 == 1008;"
STATIC = "changes the static variable {} on call after call"
OWN = "leaves something else in {} every time"
KEPT = [
    ("++c; " + LATE.format("c"), "static long c = 0;", STATIC.format("c")),
    ("static long c = std::lround(x[0] * 0); ++c; " + LATE.format("c"), "",
     STATIC.format("k::c")),
    ("__atomic_fetch_add(&c, 1, __ATOMIC_RELAXED); " + LATE.format("c"),
     '__attribute__((section("own"))) static long c = 3;', STATIC.format("c")),
    ("if (last == x[0]) bad = true; last = x[0] + 1;", "static float last = 0;",
     STATIC.format("last")),
    ("++c; " + LATE.format("c"), "static thread_local long c = 0;",
     OWN.format("a thread_local variable")),
    ("\n#pragma omp parallel\n if (omp_get_thread_num() == omp_get_num_threads() - 1) ++c;\n"
     + LATE.format("c"), "static thread_local long c = 0;",
     OWN.format("a thread_local variable")),
    ("++*c; " + LATE.format("*c"), "static long* const c = new long(0);",
     OWN.format("memory that it keeps")),
    ("if (!c) c = std::make_unique<long>(0); ++*c; " + LATE.format("*c"),
     "static thread_local std::unique_ptr<long> c;", OWN.format("memory that it keeps")),
    ("if (!first) first = x; if (x != first) ++*c; " + LATE.format("*c"),
     "static const float* first = nullptr; static long* const c = new long(0);",
     OWN.format("memory that it keeps")),
    ("static std::map<int, std::vector<long>> m; m[3].resize(9); const long c = ++m[3][7]; "
     + LATE.format("c"), "", OWN.format("memory that it keeps")),
]  # fmt: skip


@pytest.mark.parametrize(("body", "before", "words"), KEPT)
async def test_what_changes_from_call_to_call_is_refused_however_rarely_it_matters(
    forge, body, before, words
):
    verdict = await judged(forge, body, before)
    assert verdict.status == Status.KEEPS_STATE, verdict
    assert words in verdict.reason
    assert "keeps nothing between calls" in verdict.reason


FILL = "for (int i = 0; i < 256; ++i) t[i] = std::erf(i * 0.1);"
HONEST = [
    ("bad = T[9] < 0;", "static const std::vector<float> T = [] { std::vector<float> t(256); "
     f"{FILL} return t; }}();"),
    ("static const auto T = [] { std::array<float, 256> t; " f"{FILL} return t; }}(); "
     "bad = T[9] < 0;", ""),
    ("static thread_local std::vector<float> s; s.assign(x, x + n); bad = s[3] != x[3];", ""),
    ("static thread_local float s[64]; for (int i = 0; i < 64; ++i) s[i] = x[i]; "
     "bad = s[3] != x[3];", ""),
    ("static std::vector<float> s(n); for (long i = 0; i < n; ++i) s[i] = x[i]; "
     "bad = s[3] != x[3];", ""),
    ("static thread_local std::unique_ptr<float[]> s; s.reset(new float[n]); s[3] = x[3]; "
     "bad = s[3] != x[3];", ""),
    ("\n#pragma omp parallel for schedule(dynamic)\n"
     "for (long r = 0; r < n; ++r) { s.assign(64, x[r]); y[r] = s[63]; }",
     "static thread_local std::vector<float> s;"),
    ("static std::vector<std::vector<float>> s(omp_get_max_threads());\n"
     "#pragma omp parallel for\n"
     "for (long r = 0; r < n; ++r) { auto& t = s[omp_get_thread_num()]; t.assign(9, x[r]); }", ""),
    ("\n#pragma omp parallel\n{\n#pragma omp critical(name)\ny[0] = 1;\n}\n"
     "const std::string w = std::to_string(n) + std::string(99, 'w'); bad = w.size() < 99;", ""),
]  # fmt: skip


@pytest.mark.parametrize(("body", "before"), HONEST)
async def test_tables_and_scratch_memory_stay_usable(forge, body, before):
    verdict = await judged(forge, body, before)
    assert verdict.status == Status.VALID, verdict
