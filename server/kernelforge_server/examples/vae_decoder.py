"""The image decoder of Stable Diffusion 3.5 Medium at 1024x1024, with random weights.

Needs: pip install diffusers, and an NVIDIA GPU for the published size in bfloat16.
"""  # noqa: INP001  a user's file that happens to be shipped, not a part of the package

import torch
from diffusers import AutoencoderKL

ON_GPU = torch.cuda.is_available()
DEVICE = "cuda" if ON_GPU else "cpu"
DTYPE = torch.bfloat16 if ON_GPU else torch.float32


class Decoder(torch.nn.Module):
    """Latents to pictures: the half of the autoencoder that runs at the end of every generation."""

    def __init__(self, vae: AutoencoderKL) -> None:
        super().__init__()
        self.vae = vae

    def forward(self, latent: torch.Tensor) -> torch.Tensor:
        """The pictures for a batch of latents, eight times as high and wide."""
        picture: torch.Tensor = self.vae.decode(latent).sample
        return picture


def make_model() -> torch.nn.Module:
    """The published architecture, made where it will run: filling it on the CPU takes longer."""
    torch.manual_seed(0)
    with torch.device(DEVICE):
        vae = AutoencoderKL(
            down_block_types=("DownEncoderBlock2D",) * 4,
            up_block_types=("UpDecoderBlock2D",) * 4,
            block_out_channels=(128, 256, 512, 512),
            layers_per_block=2,
            latent_channels=16,
            sample_size=1024,
            use_quant_conv=False,
            use_post_quant_conv=False,
        )
    return Decoder(vae).to(DTYPE).eval()


def make_inputs() -> torch.Tensor:
    """One latent of a 1024x1024 picture."""
    generator = torch.Generator().manual_seed(1)
    return torch.randn(1, 16, 128, 128, generator=generator).to(DTYPE)
