"""What a capture says is what the model did: identities, levels, memory and the model's state."""

import json

import pytest

from kernelforge_engine.calls import TensorSpec

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def one(variants):
    (variant,) = variants
    return variant


def reasons(variants):
    return {name: vs[0].reason for name, vs in variants.items() if not vs[0].target}


async def test_alignment_and_gaps_make_variants_of_their_own(recorded):
    _, variants = await recorded(
        """
class Model(torch.nn.Module):
    def forward(self, x):
        return x[:12].exp() + x[1:13].exp() + x[4:16].exp() + x[::2][:12].exp()


def make_model():
    return Model()


def make_inputs():
    torch.manual_seed(0)
    return torch.randn(64)
"""
    )
    exp = {
        (v.call.inputs[0].aligned, v.call.inputs[0].stride): v.calls
        for v in variants["aten::exp"]
        if v.family is None
    }
    assert exp == {(True, (1,)): 2, (False, (1,)): 1, (True, (2,)): 1}
    assert all(v.target and v.examples for v in variants["aten::exp"])


async def test_numbers_lists_and_absent_arguments_are_part_of_the_identity(recorded):
    _, variants = await recorded(
        """
class Model(torch.nn.Module):
    def forward(self, x):
        y = x + 1 + 1.0 + True + torch.add(x, 1, alpha=2)
        z = torch.cat([x, y, x]) + torch.cat([x, y, y])
        return F.linear(z, x) + F.linear(z, x, None) + F.linear(z, x, x[0]) + z.clamp(min=0)


def make_model():
    return Model()


def make_inputs():
    torch.manual_seed(0)
    return torch.randn(4, 4)
"""
    )
    scalars = {repr(v.call.arguments[1].value) for v in variants["aten::add.Tensor"]}
    assert {"1", "1.0", "True"} <= scalars
    cat = one(variants["aten::cat"])
    assert (cat.calls, cat.target, len(cat.call.inputs)) == (2, True, 3)
    linears = {len(v.call.inputs): v.calls for v in variants["aten::linear"]}
    assert linears == {2: 2, 3: 1}
    assert one(variants["aten::clamp"]).call.arguments[2].value is None


async def test_parameters_are_told_from_other_inputs_and_large_ones_are_never_copied(
    recorded, tmp_path
):
    note = tmp_path / "peaks.json"
    _, variants = await recorded(
        f"""
import json, pathlib, resource

peaks = []


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(8192, 8192))  # 256 MiB

    def forward(self, x):
        y = F.linear(x, self.weight)
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        pathlib.Path({str(note)!r}).write_text(json.dumps(peaks))
        return y


def make_model():
    return Model()


def make_inputs():
    return torch.ones(2, 8192)
""",
        max_bytes=1 << 22,
    )
    linear = one(variants["aten::linear"])
    assert linear.target
    assert linear.parameters == (1,)
    first, *_, last = json.loads(note.read_text())
    assert last - first < 128 << 10


async def test_an_operator_that_writes_what_it_does_not_declare_runs_once(recorded):
    capture, variants = await recorded(
        """
class Model(torch.nn.Module):
    def forward(self, x):
        mean, var = torch.zeros(4), torch.ones(4)
        F.batch_norm(x, mean, var, training=True)
        return mean, var


def make_model():
    return Model()


def make_inputs():
    torch.manual_seed(0)
    return torch.randn(16, 4)
"""
    )
    assert "does not declare" in reasons(variants)["aten::batch_norm"]
    assert capture.output_drift == 0


async def test_recording_draws_no_random_numbers(recorded):
    capture, variants = await recorded(
        """
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.rand(4) + F.dropout(x, 0.01, training=True) + torch.rand(4).bernoulli_()


def make_model():
    return Model()


def make_inputs():
    return torch.ones(4)
"""
    )
    assert capture.output_drift == 0
    assert "random" in reasons(variants)["aten::dropout"]


async def test_autocast_is_seen_where_it_acts(recorded):
    capture, variants = await recorded(
        """
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.linear(x).relu()


def make_model():
    return Model()


def make_inputs():
    torch.manual_seed(0)
    return torch.randn(4, 8)
"""
    )
    linear = one(variants["aten::linear"])
    assert linear.target
    assert {t.dtype for t in linear.call.inputs} == {"bfloat16"}
    assert capture.output_drift == 0
    assert capture.coverage == 1


async def test_a_custom_operator_is_a_target_when_its_shape_is_known_beforehand(recorded, tmp_path):
    capture, variants = await recorded(
        """
@torch.library.custom_op("mine::scaled", mutates_args=())
def scaled(x: torch.Tensor, by: float) -> torch.Tensor:
    return x * by


@scaled.register_fake
def _(x, by):
    return torch.empty_like(x)


@torch.library.custom_op("mine::positive", mutates_args=())
def positive(x: torch.Tensor) -> torch.Tensor:
    return x[x > 0].clone()


class Model(torch.nn.Module):
    def forward(self, x):
        return scaled(x, 2.0), positive(x)


def make_model():
    return Model()


def make_inputs():
    torch.manual_seed(0)
    return torch.randn(16)
"""
    )
    mine = one(variants["mine::scaled"])
    assert mine.target
    assert mine.requires == str(tmp_path / "model.py")
    assert "no fake kernel" in one(variants["mine::positive"]).reason
    assert "aten::mul.Tensor" not in variants
    assert capture.coverage == 1


async def test_a_forward_that_uses_autograd_is_recorded_in_decomposed_operators(recorded):
    capture, variants = await recorded(
        """
class Forces(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, places):
        with torch.enable_grad():
            places = places.detach().requires_grad_()
            energy = self.linear(places).tanh().square().sum()
            return torch.autograd.grad(energy, places)[0]


def make_model():
    torch.manual_seed(0)
    return Forces()


def make_inputs():
    torch.manual_seed(0)
    return torch.randn(8, 4)
"""
    )
    assert (capture.level, capture.error, capture.output_drift) == ("decomposed", None, 0)
    assert one(variants["aten::addmm"]).target
    assert one(variants["aten::tanh_backward"]).target
    assert "aten::linear" not in variants
    assert capture.coverage > 0.9


async def test_the_fast_path_of_an_encoder_is_not_lost(recorded):
    capture, variants = await recorded(
        """
def make_model():
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    return torch.nn.TransformerEncoder(layer, 2)


def make_inputs():
    torch.manual_seed(0)
    return torch.randn(2, 5, 16)
"""
    )
    assert one(variants["aten::_transformer_encoder_layer_fwd"]).calls == 2
    assert (capture.coverage, capture.unseen) == (1, {})


async def test_tensors_that_no_kernel_is_written_for_are_counted_with_their_reasons(recorded):
    capture, variants = await recorded(
        """
class Tagged(torch.Tensor):
    pass


class Model(torch.nn.Module):
    def forward(self, x):
        tagged = x.clone().as_subclass(Tagged).exp()
        quantised = torch.quantize_per_tensor(x, 0.1, 0, torch.quint8).dequantize()
        nested = torch.nested.nested_tensor([x[0], x[1]]).sin()
        return x.to(torch.complex64).abs(), tagged.as_subclass(torch.Tensor), x.to_sparse().neg()


def make_model():
    return Model()


def make_inputs():
    torch.manual_seed(0)
    return torch.randn(4, 4)
"""
    )
    why = reasons(variants)
    assert "Tagged is not a plain tensor" in why["aten::exp"]
    assert "Quantized" in why["aten::dequantize.self"]
    assert "Nested" in why["aten::sin"]
    assert "Sparse" in why["aten::neg"]
    assert "complex" in why["aten::abs"]
    counted = [v for name, vs in variants.items() if "region::" not in name for v in vs]
    assert sum(v.share for v in counted) == pytest.approx(1)
    assert capture.error is None


@pytest.mark.parametrize("device", DEVICES)
async def test_a_generation_loop_is_recorded_token_by_token(recorded, device):
    pytest.importorskip("transformers")
    capture, variants = await recorded(
        """
from transformers import LlamaConfig, LlamaForCausalLM


class Generating:
    def __init__(self):
        torch.manual_seed(0)
        self.model = LlamaForCausalLM(
            LlamaConfig(
                vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
                num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
            )
        ).eval()

    def __call__(self, tokens):
        self.model.to(tokens.device)
        return self.model.generate(
            tokens, max_new_tokens=5, min_new_tokens=5, do_sample=False, pad_token_id=0
        )


def make_model():
    return Generating()


def make_inputs():
    return torch.arange(7)[None]
""",
        device=device,
    )
    linears = [v for v in variants["aten::linear"] if v.family is None]
    assert sum(v.calls for v in linears) == 5 * (2 * 7 + 1)
    assert {v.call.inputs[0].shape[1] for v in linears} >= {7, 1}
    assert all(1 in v.parameters for v in linears)
    assert any("LlamaMLP" in v.module or "mlp" in v.module for v in linears)
    cache = {spec.shape[-2] for v in variants["aten::cat"] for spec in outputs(v) if is_cache(spec)}
    assert cache >= {8, 9, 10, 11}
    assert capture.output_drift == 0
    assert capture.coverage == 1


def outputs(variant) -> list[TensorSpec]:
    return [o.tensor for o in variant.call.outputs]


def is_cache(spec) -> bool:
    return len(spec.shape) == 4


@pytest.mark.gpu
async def test_an_operator_across_devices_is_counted_with_its_reason(recorded):
    _, variants = await recorded(
        """
class Model(torch.nn.Module):
    def forward(self, x):
        return x * torch.tensor(2.0)


def make_model():
    return Model()


def make_inputs():
    return torch.ones(4)
""",
        device="cuda",
    )
    assert "more than one device" in reasons(variants)["aten::mul.Tensor"]
