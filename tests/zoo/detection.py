"""Small models that find things in pictures, with random weights."""

import torch
import transformers


def tiny(kind, config):
    torch.manual_seed(0)
    return kind(config).eval()


def picture(size=64):
    generator = torch.Generator().manual_seed(1)
    return {"pixel_values": torch.randn(1, 3, size, size, generator=generator)}


def make_detr():
    backbone = transformers.ResNetConfig(
        embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1], out_features=["stage2"]
    )
    config = transformers.DetrConfig(
        backbone_config=backbone, use_timm_backbone=False, use_pretrained_backbone=False,
        backbone=None, d_model=32, num_queries=10, encoder_layers=1, decoder_layers=1,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=64,
        decoder_ffn_dim=64,
    )  # fmt: skip
    return tiny(transformers.DetrForObjectDetection, config)


def inputs_detr():
    return picture()


ENCODER = {
    "encoder_hidden_dim": 32, "encoder_in_channels": [16, 32, 32], "feat_strides": [8, 16, 32],
    "encoder_ffn_dim": 64, "encoder_attention_heads": 2, "d_model": 32, "num_queries": 12,
    "decoder_in_channels": [32, 32, 32], "decoder_ffn_dim": 64, "decoder_layers": 2,
    "decoder_attention_heads": 2, "num_denoising": 0,
}  # fmt: skip


def make_rt_detr():
    backbone = transformers.RTDetrResNetConfig(
        embedding_size=16, hidden_sizes=[16, 16, 32, 32], depths=[1, 1, 1, 1], layer_type="basic",
        out_features=["stage2", "stage3", "stage4"],
    )  # fmt: skip
    config = transformers.RTDetrConfig(backbone_config=backbone, **ENCODER)
    return tiny(transformers.RTDetrForObjectDetection, config)


def inputs_rt_detr():
    return picture(96)


def make_d_fine():
    backbone = transformers.HGNetV2Config(
        stem_channels=[3, 8, 16], hidden_sizes=[16, 16, 32, 32], depths=[1, 1, 1, 1],
        stage_in_channels=[16, 16, 16, 32], stage_mid_channels=[8, 8, 8, 8],
        stage_out_channels=[16, 16, 32, 32], stage_num_blocks=[1, 1, 1, 1],
        stage_numb_of_layers=[1, 1, 1, 1], out_features=["stage2", "stage3", "stage4"],
    )  # fmt: skip
    config = transformers.DFineConfig(backbone_config=backbone, **ENCODER)
    return tiny(transformers.DFineForObjectDetection, config)


def inputs_d_fine():
    return picture(96)


def make_yolos():
    config = transformers.YolosConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        image_size=[64, 64], num_detection_tokens=10,
    )  # fmt: skip
    return tiny(transformers.YolosForObjectDetection, config)


def inputs_yolos():
    return picture()


def make_owl_vit():
    shape = {
        "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 64,
    }  # fmt: skip
    config = transformers.OwlViTConfig(
        text_config={**shape, "vocab_size": 128}, projection_dim=32,
        vision_config={**shape, "image_size": 64, "patch_size": 16},
    )  # fmt: skip
    return tiny(transformers.OwlViTForObjectDetection, config)


def inputs_owl_vit():
    ids = torch.randint(3, 128, (2, 16), generator=torch.Generator().manual_seed(1))
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), **picture()}
