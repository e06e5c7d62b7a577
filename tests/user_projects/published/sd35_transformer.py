"""One denoising step of Stable Diffusion 3.5 Medium: 4096 image and 333 text tokens, batch 2."""

import torch
from diffusers import SD3Transformer2DModel

DTYPE = torch.bfloat16


def make_model(device):
    torch.manual_seed(0)
    with torch.device(device):
        model = SD3Transformer2DModel(
            sample_size=128,
            patch_size=2,
            in_channels=16,
            out_channels=16,
            num_layers=24,
            attention_head_dim=64,
            num_attention_heads=24,
            joint_attention_dim=4096,
            caption_projection_dim=1536,
            pooled_projection_dim=2048,
            pos_embed_max_size=384,
            dual_attention_layers=tuple(range(13)),
            qk_norm="rms_norm",
        )
    return model.to(DTYPE).eval()


def make_inputs(device):
    generator = torch.Generator(device).manual_seed(1)

    def noise(*shape):
        return torch.randn(shape, generator=generator, device=device).to(DTYPE)

    return {
        "hidden_states": noise(2, 16, 128, 128),
        "encoder_hidden_states": noise(2, 333, 4096),
        "pooled_projections": noise(2, 2048),
        "timestep": torch.tensor([500.0, 500.0], device=device),
        "return_dict": False,
    }
