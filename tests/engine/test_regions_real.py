"""Regions that real models show by themselves, from tiny configurations."""


async def test_norms_rotations_and_gated_mlps_of_a_language_model_appear_by_themselves(recorded):
    _, variants = await recorded("""
from transformers import LlamaConfig, LlamaForCausalLM


def make_model():
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(
        hidden_size=64, intermediate_size=128, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=2, vocab_size=100,
    ))


def make_inputs():
    return {"input_ids": torch.arange(12).reshape(1, 12), "use_cache": False}
""")
    calls = {
        name: sum(v.calls for v in variants[f"region::{name}"] if v.target and v.family is None)
        for name in ("LlamaRMSNorm", "apply_rotary_pos_emb", "LlamaMLP", "LlamaAttention")
    }
    assert calls["LlamaRMSNorm"] == 7
    assert calls["apply_rotary_pos_emb"] == 3
    assert calls["LlamaMLP"] == 3


async def test_blocks_of_a_convolutional_model_appear_by_themselves(recorded):
    _, variants = await recorded("""
from transformers import ResNetConfig, ResNetModel


def make_model():
    torch.manual_seed(0)
    return ResNetModel(ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="bottleneck",
    ))


def make_inputs():
    torch.manual_seed(0)
    return torch.randn(1, 3, 32, 32)
""")
    blocks = variants["region::ResNetBottleNeckLayer"]
    assert [v.target for v in blocks] == [True, True]
    assert {i.operator for i in blocks[0].inside} == {
        "aten::conv2d", "aten::batch_norm", "aten::relu", "aten::add_.Tensor",
    }  # fmt: skip


async def test_modulated_norms_and_residual_blocks_of_a_diffusion_model_appear(recorded):
    _, variants = await recorded("""
from diffusers.models.normalization import AdaLayerNormZero
from diffusers.models.resnet import ResnetBlock2D


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = AdaLayerNormZero(16)
        self.block = ResnetBlock2D(in_channels=8, temb_channels=None, groups=4)

    def forward(self, x, emb, image):
        return self.norm(x, emb=emb)[0], self.block(image, None)


def make_model():
    torch.manual_seed(0)
    return Model()


def make_inputs():
    torch.manual_seed(0)
    return torch.randn(2, 5, 16), torch.randn(2, 16), torch.randn(1, 8, 16, 16)
""")
    (norm,) = variants["region::AdaLayerNormZero"]
    (block,) = variants["region::ResnetBlock2D"]
    assert norm.target, norm.reason
    assert block.target, block.reason
    # The four modulations are parts of one tensor; each is an output of its own.
    assert [o.tensor.shape for o in norm.call.outputs] == [(2, 5, 16)] + [(2, 16)] * 4
