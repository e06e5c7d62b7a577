"""Small parts of picture generators, with random weights."""

import torch
from diffusers import (
    AutoencoderKL,
    DDIMPipeline,
    DDIMScheduler,
    FluxTransformer2DModel,
    SD3Transformer2DModel,
    UNet2DConditionModel,
    UNet2DModel,
)


def noise(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def make_unet():
    torch.manual_seed(0)
    return UNet2DConditionModel(
        sample_size=16, block_out_channels=(32, 64), layers_per_block=1, cross_attention_dim=32,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"), attention_head_dim=8,
    )  # fmt: skip


def inputs_unet():
    return noise(1, 4, 16, 16), torch.tensor([3]), noise(1, 7, 32)


def make_sd3():
    torch.manual_seed(0)
    return SD3Transformer2DModel(
        sample_size=16, patch_size=2, in_channels=4, num_layers=2, attention_head_dim=8,
        num_attention_heads=4, joint_attention_dim=32, caption_projection_dim=32,
        pooled_projection_dim=64, out_channels=4, qk_norm="rms_norm", dual_attention_layers=(0,),
    )  # fmt: skip


def inputs_sd3():
    return noise(1, 4, 16, 16), noise(1, 7, 32), noise(1, 64), torch.tensor([3])


def make_flux():
    torch.manual_seed(0)
    return FluxTransformer2DModel(
        patch_size=1, in_channels=4, num_layers=1, num_single_layers=1, attention_head_dim=16,
        num_attention_heads=2, joint_attention_dim=32, pooled_projection_dim=32,
        axes_dims_rope=(4, 4, 8),
    )  # fmt: skip


def inputs_flux():
    return {
        "hidden_states": noise(1, 16, 4),
        "encoder_hidden_states": noise(1, 7, 32),
        "pooled_projections": noise(1, 32),
        "timestep": torch.tensor([1.0]),
        "img_ids": torch.zeros(16, 3),
        "txt_ids": torch.zeros(7, 3),
    }


def make_autoencoder():
    torch.manual_seed(0)
    return AutoencoderKL(
        block_out_channels=(16, 32), down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2, layers_per_block=1, latent_channels=4,
        norm_num_groups=8,
    )  # fmt: skip


def inputs_autoencoder():
    return noise(1, 3, 32, 32)


class Pictures(torch.nn.Module):
    """A whole pipeline, from noise over three steps to a picture."""

    def __init__(self, unet):
        super().__init__()
        self.unet = unet
        self.pipeline = DDIMPipeline(unet, DDIMScheduler())
        self.pipeline.set_progress_bar_config(disable=True)

    def forward(self, steps):
        made = self.pipeline(batch_size=1, num_inference_steps=steps, output_type="np")
        return torch.from_numpy(made.images)


def make_ddim_pipeline():
    torch.manual_seed(0)
    return Pictures(
        UNet2DModel(
            sample_size=16, in_channels=3, out_channels=3, block_out_channels=(16, 32),
            layers_per_block=1, down_block_types=("DownBlock2D", "AttnDownBlock2D"),
            up_block_types=("AttnUpBlock2D", "UpBlock2D"), norm_num_groups=8,
        )
    )  # fmt: skip


def inputs_ddim_pipeline():
    return (3,)
