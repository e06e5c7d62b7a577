"""Small mixtures of experts, with random weights."""

import torch
import transformers

SHAPE = {
    "vocab_size": 128, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 256,
    "pad_token_id": 0,
}  # fmt: skip
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
# Of the four layers the first three keep a state instead of attending to every token.
LINEAR = {
    "num_hidden_layers": 4, "linear_num_value_heads": 4, "linear_num_key_heads": 2,
    "linear_key_head_dim": 16, "linear_value_head_dim": 16, "shared_expert_intermediate_size": 32,
}  # fmt: skip


def tiny(kind, config):
    torch.manual_seed(0)
    return kind(config).eval()


def prompt():
    ids = torch.randint(3, 128, (1, 12), generator=torch.Generator().manual_seed(1))
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def make_mixtral():
    config = transformers.MixtralConfig(**SHAPE, num_local_experts=4)
    return tiny(transformers.MixtralForCausalLM, config)


def inputs_mixtral():
    return prompt()


def make_qwen3_moe():
    config = transformers.Qwen3MoeConfig(**SHAPE, **EXPERTS, head_dim=16)
    return tiny(transformers.Qwen3MoeForCausalLM, config)


def inputs_qwen3_moe():
    return prompt()


def make_deepseek_v3():
    config = transformers.DeepseekV3Config(
        **{**SHAPE, "num_key_value_heads": 4}, n_routed_experts=8, n_group=2, topk_group=1,
        num_experts_per_tok=2, moe_intermediate_size=32, q_lora_rank=32, kv_lora_rank=16,
        qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=16, first_k_dense_replace=1,
        n_shared_experts=1,
    )  # fmt: skip
    return tiny(transformers.DeepseekV3ForCausalLM, config)


def inputs_deepseek_v3():
    return prompt()


def make_qwen3_next():
    config = transformers.Qwen3NextConfig(**{**SHAPE, **EXPERTS, **LINEAR}, head_dim=16)
    return tiny(transformers.Qwen3NextForCausalLM, config)


def inputs_qwen3_next():
    return prompt()


def make_qwen3_5_moe():
    config = transformers.Qwen3_5MoeTextConfig(**{**SHAPE, **EXPERTS, **LINEAR}, head_dim=16)
    return tiny(transformers.Qwen3_5MoeForCausalLM, config)


def inputs_qwen3_5_moe():
    return prompt()
