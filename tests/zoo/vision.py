"""Small models that classify, segment or measure pictures, with random weights."""

import torch
import transformers


def tiny(kind, config):
    torch.manual_seed(0)
    return kind(config).eval()


def pictures(count=1, size=64):
    generator = torch.Generator().manual_seed(1)
    return {"pixel_values": torch.randn(count, 3, size, size, generator=generator)}


def make_resnet():
    config = transformers.ResNetConfig(
        embedding_size=16, hidden_sizes=[32, 64], depths=[2, 2], layer_type="bottleneck"
    )
    return tiny(transformers.ResNetForImageClassification, config)


def inputs_resnet():
    return pictures(2)


def make_regnet():
    config = transformers.RegNetConfig(
        embedding_size=16, hidden_sizes=[16, 32], depths=[1, 2], groups_width=8
    )
    return tiny(transformers.RegNetForImageClassification, config)


def inputs_regnet():
    return pictures()


def make_convnext():
    config = transformers.ConvNextConfig(num_stages=2, hidden_sizes=[16, 32], depths=[1, 2])
    return tiny(transformers.ConvNextForImageClassification, config)


def inputs_convnext():
    return pictures()


def make_convnext_v2():
    config = transformers.ConvNextV2Config(num_stages=2, hidden_sizes=[16, 32], depths=[1, 2])
    return tiny(transformers.ConvNextV2ForImageClassification, config)


def inputs_convnext_v2():
    picture = pictures()["pixel_values"]
    return {"pixel_values": picture.to(memory_format=torch.channels_last)}


def make_swin():
    config = transformers.SwinConfig(
        image_size=64, embed_dim=24, depths=[2, 2], num_heads=[2, 4], window_size=4
    )
    return tiny(transformers.SwinForImageClassification, config)


def inputs_swin():
    return pictures()


TRANSFORMER = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 64, "image_size": 64,
}  # fmt: skip


def make_vit():
    config = transformers.ViTConfig(patch_size=16, **TRANSFORMER)
    return tiny(transformers.ViTForImageClassification, config)


def inputs_vit():
    return pictures(2)


def make_dinov2():
    config = transformers.Dinov2Config(patch_size=16, **TRANSFORMER)
    return tiny(transformers.Dinov2Model, config)


def inputs_dinov2():
    """Not the size it was made for, so that its position embeddings are interpolated."""
    return pictures(size=80)


def make_clip():
    text = {**TRANSFORMER, "vocab_size": 128, "projection_dim": 16}
    del text["image_size"]
    config = transformers.CLIPConfig(
        text_config=text, vision_config={**TRANSFORMER, "patch_size": 16}, projection_dim=16
    )
    return tiny(transformers.CLIPModel, config)


def inputs_clip():
    ids = torch.randint(3, 128, (2, 9), generator=torch.Generator().manual_seed(1))
    return {"input_ids": ids, **pictures(2)}


def make_mobilenet_v1():
    config = transformers.MobileNetV1Config(image_size=64, depth_multiplier=0.25)
    return tiny(transformers.MobileNetV1ForImageClassification, config)


def inputs_mobilenet_v1():
    return pictures()


def make_mobilenet_v2():
    config = transformers.MobileNetV2Config(image_size=64, depth_multiplier=0.35)
    return tiny(transformers.MobileNetV2ForImageClassification, config)


def inputs_mobilenet_v2():
    return pictures()


def make_efficientnet():
    config = transformers.EfficientNetConfig(
        image_size=64, width_coefficient=0.5, depth_coefficient=0.5, hidden_dim=640
    )
    return tiny(transformers.EfficientNetForImageClassification, config)


def inputs_efficientnet():
    return pictures()


def make_segformer():
    config = transformers.SegformerConfig(
        num_encoder_blocks=2, depths=[1, 1], sr_ratios=[4, 1], hidden_sizes=[16, 32],
        patch_sizes=[7, 3], strides=[4, 2], num_attention_heads=[1, 2], mlp_ratios=[2, 2],
        decoder_hidden_size=32,
    )  # fmt: skip
    return tiny(transformers.SegformerForSemanticSegmentation, config)


def inputs_segformer():
    return pictures()


def make_dpt():
    config = transformers.DPTConfig(
        patch_size=16, **{**TRANSFORMER, "num_hidden_layers": 4}, backbone_out_indices=[0, 1, 2, 3],
        neck_hidden_sizes=[8, 16, 32, 32], fusion_hidden_size=16,
    )  # fmt: skip
    return tiny(transformers.DPTForDepthEstimation, config)


def inputs_dpt():
    return pictures()
