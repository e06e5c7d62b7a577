"""Small models that hear or speak, with random weights."""

import torch
import transformers


def tiny(kind, config):
    torch.manual_seed(0)
    return kind(config).eval()


def noise(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


class Transcription(torch.nn.Module):
    """A recogniser as a user calls it: a spectrogram in, tokens out."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, spectrogram):
        return self.model.generate(spectrogram, max_new_tokens=5, do_sample=False)


def make_whisper_generation():
    config = transformers.WhisperConfig(
        vocab_size=256, d_model=32, encoder_layers=1, decoder_layers=2, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=64, decoder_ffn_dim=64, max_source_positions=50,
        decoder_start_token_id=1, pad_token_id=0, bos_token_id=0, eos_token_id=2,
        suppress_tokens=None, begin_suppress_tokens=None,
    )  # fmt: skip
    return Transcription(tiny(transformers.WhisperForConditionalGeneration, config))


def inputs_whisper_generation():
    return noise(1, 80, 100)


SPEECH = {
    "vocab_size": 32, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 64, "conv_dim": (16,) * 7, "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
}  # fmt: skip


def make_wav2vec2():
    return tiny(transformers.Wav2Vec2ForCTC, transformers.Wav2Vec2Config(**SPEECH))


def inputs_wav2vec2():
    return noise(1, 4000)


def make_hubert():
    return tiny(transformers.HubertModel, transformers.HubertConfig(**SPEECH))


def inputs_hubert():
    return noise(1, 4000)


def make_encodec():
    config = transformers.EncodecConfig(num_filters=4, hidden_size=16, codebook_dim=16)
    return tiny(transformers.EncodecModel, config)


def inputs_encodec():
    return noise(1, 1, 3200)


def make_vits():
    config = transformers.VitsConfig(
        vocab_size=38, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, ffn_dim=64,
        flow_size=32, spectrogram_bins=33, upsample_initial_channel=32, prior_encoder_num_flows=2,
    )  # fmt: skip
    return tiny(transformers.VitsModel, config)


def inputs_vits():
    return torch.randint(3, 38, (1, 10), generator=torch.Generator().manual_seed(1))
