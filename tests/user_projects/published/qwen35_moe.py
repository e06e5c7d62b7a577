"""Qwen 3.5 35B-A3B with random weights: 256 experts, 8 of them for each token."""

from generation import built, prompt
from transformers import Qwen3_5MoeForCausalLM, Qwen3_5MoeTextConfig


def config():
    return Qwen3_5MoeTextConfig(attn_implementation="eager")


def make_model(device):
    return built(Qwen3_5MoeForCausalLM, config(), device)


def make_inputs(device):
    return prompt(config().vocab_size, device)
