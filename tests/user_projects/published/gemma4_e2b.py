"""Gemma 4 E2B with random weights."""

from generation import built, prompt
from transformers import Gemma4ForCausalLM, Gemma4TextConfig

LAYERS = 35


def config():
    return Gemma4TextConfig(
        hidden_size=1536,
        intermediate_size=6144,
        num_hidden_layers=LAYERS,
        num_attention_heads=8,
        num_key_value_heads=1,
        head_dim=256,
        sliding_window=512,
        layer_types=[
            "full_attention" if (i + 1) % 5 == 0 else "sliding_attention" for i in range(LAYERS)
        ],
        num_kv_shared_layers=20,
        use_double_wide_mlp=True,
        final_logit_softcapping=30.0,
        attn_implementation="eager",
    )


def make_model(device):
    return built(Gemma4ForCausalLM, config(), device)


def make_inputs(device):
    return prompt(config().vocab_size, device)
