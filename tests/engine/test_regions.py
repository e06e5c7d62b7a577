"""Regions: forwards and functions as one target, from tracing to a verdict, through the engine."""

import pytest

from kernelforge_engine.engine import Engine
from kernelforge_engine.errors import BadOption
from kernelforge_engine.exchanges import CaptureRequest, Proposal
from kernelforge_engine.records import Outcome, Status
from kernelforge_server.settings import resolve

pytestmark = pytest.mark.calm

BACKENDS = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]

RMS_NORM = """
class RMSNorm(torch.nn.Module):
    def __init__(self, size=96, eps=1e-6):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(size))
        self.variance_epsilon = eps

    def forward(self, hidden_states):
        dtype = hidden_states.dtype
        hidden_states = hidden_states.to(torch.float32)
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        hidden_states = hidden_states * torch.rsqrt(variance + self.variance_epsilon)
        return self.weight * hidden_states.to(dtype)
"""

NORMS = f"""{RMS_NORM}
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.other = RMSNorm(), RMSNorm(), RMSNorm(eps=1e-2)
        self.linear = torch.nn.Linear(96, 96)

    def forward(self, x):
        return self.other(self.second(self.linear(self.first(x))))


def make_model():
    torch.manual_seed(0)
    return Block()


def make_inputs():
    torch.manual_seed(0)
    return torch.randn(40, 96)
"""

HEADER = """/* kernelforge
[let]
cols = "in0.shape[-1]"
rows = "in0.numel / cols"
[[launch]]
kernel = "rms_norm"
$GRIDargs = ["in0", "in1", "out0", "i32:rows", "i32:cols", "f32:variance_epsilon"]
*/
"""

KERNEL = {
    "cpu": HEADER.replace("$GRID", "")
    + """
#include <cmath>
extern "C" void rms_norm(const float* x, const float* w, float* y, int rows, int cols, float eps) {
  for (int r = 0; r < rows; ++r) {
    float sum = 0.f;
    for (int c = 0; c < cols; ++c) sum += x[r * cols + c] * x[r * cols + c];
    const float scale = 1.f / std::sqrt(sum / cols + eps);
    for (int c = 0; c < cols; ++c) y[r * cols + c] = w[c] * (x[r * cols + c] * scale);
  }
}
""",
    "cuda": HEADER.replace("$GRID", 'grid = ["rows"]\nblock = [32]\n')
    + """
extern "C" __global__ void rms_norm(const float* x, const float* w, float* y, int rows, int cols,
                                    float eps) {
  x += blockIdx.x * cols;
  y += blockIdx.x * cols;
  float sum = 0.f;
  for (int c = threadIdx.x; c < cols; c += 32) sum += x[c] * x[c];
  for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  const float scale = 1.f / sqrtf(sum / cols + eps);
  for (int c = threadIdx.x; c < cols; c += 32) y[c] = w[c] * (x[c] * scale);
}
""",
}


def model(forward, *, inputs="torch.randn(6, 8)", init="", functions=""):
    """The text of a model file whose module Part is called by another one."""
    return f"""
{functions}


class Part(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)
        {init or "pass"}

    {forward}


class Whole(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()

    def forward(self, x):
        return self.part(x)


def make_model():
    torch.manual_seed(0)
    return Whole()


def make_inputs():
    torch.manual_seed(0)
    return {inputs}
"""


def only_reason(variants, name):
    (variant,) = variants[f"region::{name}"]
    assert not variant.target
    return variant.reason


def silent(_progress):
    pass


async def test_equal_instances_are_one_variant_and_another_eps_makes_another(recorded):
    _, variants = await recorded(NORMS)
    norms = [v for v in variants["region::RMSNorm"] if v.family is None]
    found = {next(a.value for a in v.call.arguments if a.name == "variance_epsilon"): v
             for v in norms}  # fmt: skip
    assert {eps: v.calls for eps, v in found.items()} == {1e-6: 2, 1e-2: 1}
    norm = found[1e-6]
    assert norm.target
    assert norm.module == "first (RMSNorm)"
    assert [a.name for a in norm.call.arguments] == [
        "hidden_states", "variance_epsilon", "weight", "program",
    ]  # fmt: skip
    assert norm.parameters == (1,)
    assert norm.call.region.terms == 96
    assert "self.variance_epsilon" in norm.call.region.source
    inside = {i.operator: i.calls for i in norm.inside}
    assert inside["aten::mul.Tensor"] == 2
    assert norm.within == ("region::Block",)
    assert 0 < norm.share < 1
    assert norm.launches == 6


@pytest.mark.parametrize("device", BACKENDS)
async def test_a_kernel_for_a_region_is_judged_and_timed(tmp_path, device):
    file = tmp_path / "model.py"
    file.write_text(f"import torch\n{NORMS}")
    request = CaptureRequest(model=f"{file}:make_model", device=device)
    async with Engine.open(resolve(tmp_path / "project")) as engine:
        capture = await engine.capture(request, silent)
        (norm, *_) = [
            v
            for c in await engine.cards(capture.id)
            for v in c.variants
            if v.call.operator == "region::RMSNorm" and v.family is None
        ]

        async def submit(text):
            return await engine.submit(Proposal(text=text, variant_id=norm.id), silent)

        honest = await submit(KERNEL[device])
        assert honest.verdict.status == Status.VALID, honest.verdict.reason
        assert honest.verdict.evidence["reference"] == "float64"
        wrong = await submit(KERNEL[device].replace("= w[c] * ", "= "))
        assert wrong.verdict.status == Status.WRONG_VALUES
        node = await engine.benchmark(honest.node.id, silent)
        assert node.timing is not None
        assert node.timing.outcome in Outcome
        assert node.timing.candidate_us > 0
        if node.timing.outcome == Outcome.FASTER:
            summary = await engine.export(tmp_path / "norms.cast", node_ids=(node.id,))
            assert [entry.operator for entry in summary.entries] == ["region::RMSNorm"]
        else:
            with pytest.raises(BadOption, match="benchmark"):
                await engine.export(tmp_path / "norms.cast", node_ids=(node.id,))


async def test_regions_inside_regions_say_so(recorded):
    _, variants = await recorded(
        model(
            "def forward(self, x):\n        return self.inner(torch.relu(self.linear(x)))",
            init="self.inner = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU())",
        )
    )
    (inner,) = variants["region::Sequential"]
    (part,) = variants["region::Part"]
    assert inner.target
    assert part.target
    assert inner.within == ("region::Part", "region::Whole")
    assert part.within == ("region::Whole",)
    assert {i.operator: i.calls for i in part.inside} == {
        "aten::linear": 2, "aten::relu": 1, "aten::gelu": 1,
    }  # fmt: skip


async def test_a_function_of_the_models_own_code_is_a_region(recorded):
    _, variants = await recorded(
        model(
            """def forward(self, x):
        return rotate(self.linear(x), x + 1, scale=2.0) + unused(1)""",
            functions="""
def rotate(q, other, scale=1.0, mask=None):
    first, second = q.chunk(2, -1)
    return torch.cat((-second, first), -1) * other * scale


def unused(number):
    return number
""",
        )
    )
    (rotate,) = variants["region::rotate"]
    assert rotate.target
    assert rotate.call.region.kind == "function"
    assert rotate.call.region.source.startswith("def rotate(q, other")
    assert rotate.module == "part (Part)"
    values = {a.name: a.value for a in rotate.call.arguments}
    assert values["scale"] == 2.0
    assert values["mask"] is None
    assert rotate.within == ("region::Part", "region::Whole")
    assert "region::unused" not in variants


async def test_keywords_defaults_and_several_outputs_are_part_of_a_region(recorded):
    _, variants = await recorded(
        model(
            """def forward(self, x, *, shift=None, factor=3):
        y = self.linear(x) * factor
        return [y + shift, None, *torch.relu(y).chunk(2, -1)]""",
        ).replace("return self.part(x)", "return self.part(x, shift=x + 1)[2]")
    )
    (part,) = variants["region::Part"]
    assert part.target, part.reason
    assert [a.name for a in part.call.arguments] == [
        "x", "shift", "factor", "linear.weight", "linear.bias", "program",
    ]  # fmt: skip
    assert part.call.arguments[2].value == 3
    assert [o.tensor.shape for o in part.call.outputs] == [(6, 8), (6, 4), (6, 4)]
    assert part.call.region.form == "list"
    assert part.call.region.returns[1] == -1


async def test_a_tensor_that_is_given_twice_is_one_input(recorded):
    _, variants = await recorded(
        model("def forward(self, x, y):\n        return self.linear(x) * y").replace(
            "return self.part(x)", "return self.part(x, x) + self.part(x, x + 1)"
        )
    )
    found = {len(v.call.inputs): v for v in variants["region::Part"] if v.family is None}
    assert sorted(found) == [3, 4]
    assert found[3].call.arguments[1].value == "same as in0"


@pytest.mark.parametrize(
    ("forward", "init", "reason"),
    [
        (
            "return self.linear(x) + self.hidden",
            "self.hidden = torch.ones(8)",
            "it reads a tensor that is no argument and no parameter",
        ),
        ("return self.linear(x) + torch.rand_like(x)", "", "it is random"),
        ("return self.linear(x.mul_(2)) + 1", "", "it writes an input"),
        (
            "y = self.linear(x)\n        return y * y.sum().item()",
            "",
            "it reads a tensor's value into Python",
        ),
        ("return x, torch.relu(self.linear(x))", "", "an output is a view"),
        (
            "y = torch.relu(self.linear(x))\n        return y[y > 0]",
            "",
            "its output shape depends on data",
        ),
        (
            "y = self.linear(x)\n        return {'y': torch.relu(y)}",
            "",
            "it returns something else than tensors",
        ),
        (
            "for _ in range(70):\n            x = x + 1\n        return self.linear(x)",
            "",
            "it holds more than 64 operators",
        ),
        (
            "with torch.autocast(x.device.type, torch.bfloat16):\n            return self.inner(x)",
            "self.inner = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU())",
            None,
        ),
    ],
)
async def test_what_is_no_function_of_its_inputs_is_counted_with_its_reason(
    recorded, forward, init, reason
):
    _, variants = await recorded(model(f"def forward(self, x):\n        {forward}", init=init))
    if reason is None:
        name, reason = "Sequential", "autocast acts on the operators inside it"
    else:
        name = "Part"
    assert only_reason(variants, name) == reason


async def test_a_module_of_one_operator_is_no_region(recorded):
    _, variants = await recorded(
        model("def forward(self, x):\n        return torch.relu(self.linear(x))")
    )
    assert "region::Part" in variants
    assert "region::Linear" not in variants


async def test_a_counter_in_python_shows_in_the_second_call(recorded):
    _, variants = await recorded(
        model(
            """def forward(self, x):
        self._calls += 1
        return self.linear(x) * self._calls""",
            init="self._calls = 0",
        ).replace("return self.part(x)", "return self.part(x) + self.part(x)")
    )
    assert only_reason(variants, "Part") == "its operators change from call to call"


async def test_in_place_operators_on_intermediates_and_factories_are_recorded(recorded):
    _, variants = await recorded(
        model(
            """def forward(self, x):
        y = self.linear(x)
        y.add_(torch.arange(8, device=x.device)).relu_()
        y[:, 0] = 0
        return torch.stack([y, torch.full_like(y, 2.0), torch.zeros(6, 8, device=x.device)])""",
        )
    )
    (part,) = variants["region::Part"]
    assert part.target, part.reason
    (zeros,) = [s for s in part.call.region.steps if s.operator == "aten::zeros"]
    values = {a.name: a.value for a in zeros.arguments}
    assert values["dtype"] == {"dtype": "float32"}
    assert values["device"] == {"device": "cpu"}
