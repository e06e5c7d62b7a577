"""What the label of a node rests on, and why no candidate can hand its work to a library."""

import pytest

from kernelforge_engine.records import Label, Status

pytestmark = pytest.mark.parametrize("forge", ["cpu"], indirect=True)
HEADER = """/* kernelforge
[[launch]]
kernel = "k"
args = ["in0", "out0", "i64:in0.numel"]
*/
"""
KERNEL = """#include <cmath>
extern "C" void k(const float* x, float* y, long n) {
#pragma omp parallel for
  for (long i = 0; i < n; ++i) y[i] = x[i] < 0.f ? 0.f : x[i];
  if (n < 0) y[0] = tanf(x[0]);
}
"""


def using(line, before=""):
    return f'{HEADER}{before}\nextern "C" void k(const float* x, float* y, long n) {{ {line} }}\n'


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("model") / "model.py"
    file.write_text(
        "import torch\n\n\ndef make_model():\n    return torch.nn.ReLU()\n\n\n"
        "def make_inputs():\n    torch.manual_seed(0)\n    return torch.randn(48, 64)\n"
    )
    return file


async def test_a_node_records_what_it_launches_and_what_its_build_needs(forge):
    plan = HEADER.replace("*/", '[[launch]]\nkernel = "none"\nargs = []\n*/')
    text = plan + KERNEL + 'extern "C" void none() {}\n'
    node = (await forge.submit("aten::relu", text, tier="quick")).node
    assert node.label == Label.GENERATED
    audit = node.verdict.evidence["audit"]
    assert audit["launches"] == ["k", "none"]
    assert {"GOMP_parallel", "tanf"} <= set(audit["imports"])
    assert "libm.so.6" in audit["libraries"]
    assert all(part.startswith(("libm.", "libc.", "ld-linux")) for part in audit["libraries"])
    root = await forge.engine.node(node.parent_id)
    assert (root.label, root.verdict) == (Label.FALLBACK, None)


RELU = "_ZN2at4_ops4relu4callERKNS_6TensorE"


@pytest.mark.parametrize(
    ("text", "status", "words"),
    [
        ("/* kernelforge\n*/\n" + KERNEL, Status.REJECTED_SOURCE, "launch"),
        (HEADER.replace('"k"', '"memcpy"') + KERNEL, Status.REJECTED_SOURCE, "not defined"),
        (using("cblas_scopy(n, x, 1, y, 1);",
               'extern "C" void cblas_scopy(int, const float*, int, float*, int);'),
         Status.COMPILE_FAILED, "it calls cblas_scopy"),
        (using(f"{RELU}(x);", f'extern "C" void {RELU}(const void*);'),
         Status.COMPILE_FAILED, "it calls at::_ops::relu::call(at::Tensor const&)"),
        (using("if (sgemm_) sgemm_();", 'extern "C" __attribute__((weak)) void sgemm_();'),
         Status.COMPILE_FAILED, "it calls sgemm_"),
        (using('dlopen("libtorch_cpu.so", 1);', "#include <dlfcn.h>"),
         Status.COMPILE_FAILED, "it calls dlopen"),
        (using('y[0] = dlsym(nullptr, "sgemm_") != nullptr;', "#include <dlfcn.h>"),
         Status.COMPILE_FAILED, "it calls dlsym"),
        (using('PyRun_SimpleString("import torch");',
               'extern "C" int PyRun_SimpleString(const char*);'),
         Status.COMPILE_FAILED, "it calls PyRun_SimpleString"),
        (using("", "#include <torch/torch.h>"), Status.COMPILE_FAILED, "torch.h: not available"),
        (using("", "#include <ATen/ATen.h>"), Status.COMPILE_FAILED, "ATen.h: not available"),
        (using("", '__attribute__((section(".dynamic,\\"aw\\",@progbits#"), used)) '
               "unsigned long d[2] = {1, 9};"),
         Status.COMPILE_FAILED, ": only the C++ runtime is there"),
        (using("", '#define A(x, y) x##y\nA(as, m)(".incbin \\"/usr/lib/libblas.so\\"");'),
         Status.COMPILE_FAILED, "file not found: libblas.so"),
    ],
)  # fmt: skip
async def test_no_library_can_be_given_the_work(forge, text, status, words):
    verdict = (await forge.submit("aten::relu", text, tier="quick")).verdict
    assert verdict.status == status, verdict
    assert words in f"{verdict.reason}\n{verdict.log}"
    assert "audit" not in verdict.evidence
