"""ResNet-50 in half precision on a batch of 32 pictures, with random weights.

Needs: pip install torchvision, and an NVIDIA GPU.
"""  # noqa: INP001  a user's file that happens to be shipped, not a part of the package

import torch
from torchvision.models import resnet50


def make_model() -> torch.nn.Module:
    """The network as torchvision defines it, in its usual contiguous layout."""
    torch.manual_seed(0)
    model: torch.nn.Module = resnet50(weights=None)
    return model.eval().to("cuda", torch.float16)


def make_inputs() -> torch.Tensor:
    """A batch of normally distributed pictures."""
    generator = torch.Generator().manual_seed(1)
    return torch.randn(32, 3, 224, 224, generator=generator).to("cuda", torch.float16)
