"""A speech recogniser of the size of Whisper small: 30 s of sound, 16 tokens."""

import torch
from transformers import WhisperConfig, WhisperForConditionalGeneration

TOKENS = 16


class Transcription(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, features):
        return self.model.generate(
            features, max_new_tokens=TOKENS, min_new_tokens=TOKENS, do_sample=False
        )


def make_model(device):
    torch.manual_seed(0)
    config = WhisperConfig(
        d_model=768,
        encoder_layers=12,
        decoder_layers=12,
        encoder_attention_heads=12,
        decoder_attention_heads=12,
        encoder_ffn_dim=3072,
        decoder_ffn_dim=3072,
    )
    with torch.device(device):
        model = WhisperForConditionalGeneration(config)
    return Transcription(model.to(torch.float16).eval())


def make_inputs(device):
    generator = torch.Generator(device).manual_seed(1)
    return torch.randn(1, 80, 3000, generator=generator, device=device).half()
