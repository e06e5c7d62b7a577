"""A prompt of 256 tokens and 16 greedy decoding steps with a growing cache."""

import torch

PROMPT, STEPS = 256, 16


class Generation(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, prompt):
        ids, cache, tokens = prompt, None, []
        for _ in range(STEPS + 1):
            out = self.model(input_ids=ids, past_key_values=cache, use_cache=True)
            cache = out.past_key_values
            ids = out.logits[:, -1:].argmax(-1)
            tokens.append(ids)
        return torch.cat(tokens, -1)


def built(make, config, device, dtype=torch.bfloat16):
    """The model with random weights, made where it will run and in its own dtype."""
    torch.manual_seed(0)
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with torch.device(device):
            model = make(config)
    finally:
        torch.set_default_dtype(before)
    return Generation(model.eval())


def prompt(vocabulary, device):
    generator = torch.Generator(device).manual_seed(1)
    return torch.randint(3, vocabulary, (1, PROMPT), generator=generator, device=device)
