"""What the tests of the ways in name: tiny models, a package, saved programs, files of inputs."""

import json
import wave

import numpy as np
import pytest
import torch
import transformers
from diffusers import AutoencoderKL, DDIMPipeline, DDIMScheduler, UNet2DModel
from PIL import Image
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, pre_tokenizers

RATE = 16_000
WORDS = ["[UNK]", "a", "kernel", "reads", "every", "byte", "once"]

PACKAGE = """
import torch


@torch.library.custom_op("ways_in::double", mutates_args=())
def double(x: torch.Tensor) -> torch.Tensor:
    return x * 2


class Model(torch.nn.Module):
    def forward(self, x, y=1.0):
        return torch.relu(double(x) * y)


def build():
    return Model()


def make_inputs():
    return torch.ones(2, 3)


def larger():
    return {"x": torch.ones(4, 5)}
"""


class Plain(torch.nn.Module):
    def forward(self, x, scale):
        return torch.relu(x) * scale


def llama():
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
            vocab_size=120,
        )
    )  # fmt: skip


def resnet():
    return transformers.ResNetForImageClassification(
        transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 8], depths=[1, 1])
    )


def whisper():
    return transformers.WhisperForConditionalGeneration(
        transformers.WhisperConfig(
            d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
            decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, vocab_size=120,
            max_source_positions=50, max_target_positions=40, num_mel_bins=16, pad_token_id=0,
            bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
        )
    )  # fmt: skip


def wav2vec():
    return transformers.Wav2Vec2Model(
        transformers.Wav2Vec2Config(
            hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
            conv_dim=(16, 16), conv_stride=(5, 2), conv_kernel=(10, 3), num_feat_extract_layers=2,
            num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4,
        )
    )  # fmt: skip


def vae():
    return AutoencoderKL(
        block_out_channels=(32, 32), down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2, latent_channels=4, sample_size=32,
    )  # fmt: skip


def ddim():
    denoiser = UNet2DModel(
        sample_size=8, block_out_channels=(32, 32), down_block_types=("DownBlock2D",) * 2,
        up_block_types=("UpBlock2D",) * 2, norm_num_groups=8,
    )  # fmt: skip
    return DDIMPipeline(denoiser, DDIMScheduler())


MADE = {
    "llama": llama, "resnet": resnet, "whisper": whisper, "wav2vec": wav2vec, "vae": vae,
    "ddim": ddim,
}  # fmt: skip


def filled(folder):
    """Put folders as save_pretrained writes them, a package, saved programs and files of inputs
    into a folder."""
    torch.manual_seed(0)
    for name, make in MADE.items():
        make().save_pretrained(folder / name)
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token=WORDS[0]))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "llama" / "tokenizer.json"))
    described = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": WORDS[0]}
    (folder / "llama" / "tokenizer_config.json").write_text(json.dumps(described))
    transformers.WhisperFeatureExtractor(feature_size=16, chunk_length=1).save_pretrained(
        folder / "whisper"
    )
    (folder / "ways_package").mkdir()
    (folder / "ways_package" / "__init__.py").write_text("")
    (folder / "ways_package" / "model.py").write_text(PACKAGE)
    programs(folder)
    files(folder)
    return folder


def programs(folder):
    example = (torch.ones(3, 4), torch.tensor(2.0))
    torch.export.save(torch.export.export(Plain(), example), folder / "plain.pt2")
    with pytest.warns(DeprecationWarning, match="torch.jit"):
        torch.jit.save(torch.jit.script(Plain()), folder / "plain.pt")
    torch.save(Plain().state_dict(), folder / "weights.pt")


def files(folder):
    save_file({"x": torch.ones(2, 2), "scale": torch.ones(1)}, folder / "named.safetensors")
    save_file({"0": torch.ones(5, 2), "1": torch.ones(1)}, folder / "placed.safetensors")
    (folder / "text.txt").write_text("a kernel reads every byte once\n")
    Image.new("RGB", (40, 30), (255, 0, 128)).save(folder / "picture.png")
    tone = (np.sin(np.arange(RATE) / 20) * 20_000).astype("<i2")
    with wave.open(str(folder / "sound.wav"), "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", "none"))
        file.writeframes(tone.tobytes())
    (folder / "broken.png").write_text("no picture")
    (folder / "broken.wav").write_text("no sound")
    (folder / "broken.safetensors").write_text("no tensors")
    (folder / "inputs.py").write_text(
        "import torch\n\n\ndef pair():\n    return torch.ones(7, 1), torch.ones(())\n"
    )
    (folder / "model.py").write_text(PACKAGE.replace("ways_in::", "ways_in_file::"))
