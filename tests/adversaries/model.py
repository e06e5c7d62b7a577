"""A model whose capture gives the operators that the corpus attacks, each once.

Sizes are small and odd: a tail after every tile, rows and columns that nothing divides.
"""

import torch
from torch import Tensor
from torch.nn import functional


class Targets(torch.nn.Module):
    """Every operator on tensors of its own, so that none depends on another's result."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(7)
        for name, shape in (
            ("scale", (1000,)),
            ("shift", (1000,)),
            ("channel_scale", (24,)),
            ("channel_shift", (24,)),
            ("weight", (132, 515)),
            ("bias", (132,)),
            ("table", (700, 72)),
            ("filters", (20, 24, 3, 3)),
        ):
            self.register_buffer(name, torch.randn(shape) * (0.05 if "weight" in name else 0.7))

    def forward(self, x: Tensor, y: Tensor, image: Tensor, rows: Tensor) -> list[Tensor]:
        """The results, one of each kind."""
        return [
            *self._elementwise(x, y),
            *self._sums(x),
            *self._selections(x, y, rows),
            *self._images(image),
            *self._narrow(x, y),
        ]

    def _elementwise(self, x: Tensor, y: Tensor) -> list[Tensor]:
        return [
            torch.relu(x),
            torch.relu(x.t()),
            torch.relu(x.flatten()[1:].view(-1)[:90001]),
            functional.gelu(x),
            torch.exp(x),
            torch.round(x),
            x + self.shift,
            torch.sub(x, y[:1].expand(96, 1000)),
            x.clone().mul_(y),
            *[torch.sigmoid(x[:rows]) for rows in (33, 64, 91)],
        ]

    def _sums(self, x: Tensor) -> list[Tensor]:
        wide = x.flatten()[: 75 * 515].view(75, 515)
        return [
            torch.softmax(x, -1),
            functional.layer_norm(x, (1000,), self.scale, self.shift),
            functional.rms_norm(x, (1000,), self.scale, 1e-6),
            torch.cumsum(x, -1),
            x.mean(-1),
            x.sum(0),
            x.var(-1),
            functional.linear(wide, self.weight, self.bias),
            torch.matmul(wide, self.weight.t().contiguous()),
        ]

    def _selections(self, x: Tensor, y: Tensor, rows: Tensor) -> list[Tensor]:
        return [
            *torch.max(x, -1),
            torch.argmax(x, -1),
            *torch.topk(x, 5, -1),
            functional.embedding(rows, self.table),
            torch.where(y > 0, x, y),
            torch.roll(x, 3, 1),
        ]

    def _images(self, image: Tensor) -> list[Tensor]:
        return [
            functional.group_norm(image, 6, self.channel_scale, self.channel_shift),
            functional.max_pool2d(image.to(memory_format=torch.channels_last), 3, 2, 1),
            functional.conv2d(image, self.filters),
        ]

    def _narrow(self, x: Tensor, y: Tensor) -> list[Tensor]:
        narrow, half = x.bfloat16(), x.half()
        wide = narrow.flatten()[: 75 * 515].view(75, 515)
        return [
            functional.gelu(narrow),
            functional.linear(wide, self.weight.bfloat16(), self.bias.bfloat16()),
            functional.layer_norm(narrow, (1000,), self.scale.bfloat16(), self.shift.bfloat16()),
            torch.softmax(half, -1),
            half + y.half(),
        ]


def make_model() -> Targets:
    """The model."""
    return Targets().eval()


def make_inputs() -> tuple[Tensor, ...]:
    """Its inputs, the same ones every time."""
    torch.manual_seed(11)
    x, y = torch.randn(96, 1000), torch.randn(96, 1000)
    return x, y, torch.randn(3, 24, 13, 17), torch.randint(700, (130,))
