"""Small models of torch's own modules, with random weights."""

import torch


def noise(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


def make_lstm():
    torch.manual_seed(0)
    return torch.nn.LSTM(16, 32, 2, batch_first=True, bidirectional=True)


def inputs_lstm():
    return noise(2, 10, 16)


def make_gru():
    torch.manual_seed(0)
    return torch.nn.GRU(16, 32, 2)


def inputs_gru():
    return noise(9, 2, 16)


def make_transformer_encoder():
    """In eval mode torch runs a whole layer as one fused operator."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    return torch.nn.TransformerEncoder(layer, 2)


def inputs_transformer_encoder():
    return noise(2, 10, 64)


def make_transformer_decoder():
    torch.manual_seed(0)
    return torch.nn.TransformerDecoder(torch.nn.TransformerDecoderLayer(32, 2, 64), 2)


def inputs_transformer_decoder():
    return noise(5, 2, 32), noise(7, 2, 32)


class Autocast(torch.nn.Module):
    """Matrix products in bfloat16 inside a model in float32."""

    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(
            torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.LayerNorm(64), torch.nn.Linear(64, 8)
        )

    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16):
            return self.body(x).softmax(-1)


def make_autocast():
    torch.manual_seed(0)
    return Autocast()


def inputs_autocast():
    return noise(6, 32)


class TimeSeries(torch.nn.Module):
    """Convolutions over time, in the memory format of pictures, and a scripted head."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv1d(4, 16, 5, padding=2)
        self.picture = torch.nn.Sequential(
            torch.nn.Conv2d(1, 8, 3, padding=1, bias=False),
            torch.nn.BatchNorm2d(8),
            torch.nn.ReLU(inplace=True),
            torch.nn.ConvTranspose2d(8, 4, 2, stride=2),
            torch.nn.PixelShuffle(2),
        ).to(memory_format=torch.channels_last)
        self.head = torch.jit.script(torch.nn.Sequential(torch.nn.Linear(64, 16), torch.nn.SiLU()))

    def forward(self, x):
        x = torch.nn.functional.instance_norm(self.first(x))
        x = self.picture(x[:, None].to(memory_format=torch.channels_last))
        return self.head(x[..., :64]).topk(4).values


def make_time_series():
    torch.manual_seed(0)
    return TimeSeries()


def inputs_time_series():
    return noise(2, 4, 32)
