"""Small language models, prefilled or generating, with random weights."""

import torch
import transformers

SHAPE = {
    "vocab_size": 128, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 256,
    "pad_token_id": 0,
}  # fmt: skip


def tiny(kind, config):
    torch.manual_seed(0)
    return kind(config).eval()


def prompt(length=12, vocabulary=128):
    ids = torch.randint(3, vocabulary, (1, length), generator=torch.Generator().manual_seed(1))
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


class Generation(torch.nn.Module):
    """A model as a chat program uses it: a prompt in, tokens out, with a cache that grows."""

    def __init__(self, model, tokens):
        super().__init__()
        self.model = model
        self.tokens = tokens

    def forward(self, **inputs):
        return self.model.generate(
            **inputs, max_new_tokens=self.tokens, do_sample=False, eos_token_id=None
        )


def make_llama():
    return tiny(transformers.LlamaForCausalLM, transformers.LlamaConfig(**SHAPE))


def inputs_llama():
    return prompt()


def make_llama_generation():
    return Generation(make_llama(), 8)


def inputs_llama_generation():
    return prompt()


def make_qwen3_generation():
    config = transformers.Qwen3Config(**SHAPE, head_dim=16)
    return Generation(tiny(transformers.Qwen3ForCausalLM, config), 6)


def inputs_qwen3_generation():
    return prompt(9)


def make_gemma3():
    config = transformers.Gemma3TextConfig(**SHAPE, head_dim=16, sliding_window=8)
    return tiny(transformers.Gemma3ForCausalLM, config)


def inputs_gemma3():
    return prompt()


def make_gemma4():
    config = transformers.Gemma4TextConfig(
        **{**SHAPE, "num_hidden_layers": 4}, head_dim=16, global_head_dim=32, sliding_window=8,
        num_kv_shared_layers=1, hidden_size_per_layer_input=16, vocab_size_per_layer_input=128,
        layer_types=["sliding_attention", "full_attention"] * 2,
    )  # fmt: skip
    return tiny(transformers.Gemma4ForCausalLM, config)


def inputs_gemma4():
    return prompt()


def make_gpt2():
    config = transformers.GPT2Config(vocab_size=128, n_embd=64, n_layer=2, n_head=4)
    return tiny(transformers.GPT2LMHeadModel, config)


def inputs_gpt2():
    return prompt()


def make_bert():
    config = transformers.BertConfig(
        vocab_size=128, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=128,
    )  # fmt: skip
    return tiny(transformers.BertModel, config)


def inputs_bert():
    """Two sentences, the second of which is padded."""
    ids = prompt(20)["input_ids"].view(2, 10)
    mask = torch.ones_like(ids)
    mask[1, 7:] = 0
    return {"input_ids": ids, "attention_mask": mask}


def make_t5_generation():
    config = transformers.T5Config(
        vocab_size=128, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4,
        decoder_start_token_id=0,
    )  # fmt: skip
    return Generation(tiny(transformers.T5ForConditionalGeneration, config), 4)


def inputs_t5_generation():
    return prompt()


def make_mamba():
    config = transformers.MambaConfig(
        vocab_size=128, hidden_size=32, num_hidden_layers=2, state_size=8
    )
    return tiny(transformers.MambaForCausalLM, config)


def inputs_mamba():
    return prompt(8)
