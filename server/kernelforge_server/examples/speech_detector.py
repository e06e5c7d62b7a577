"""The Silero voice activity detector, a TorchScript model, on one second of made-up audio.

Needs: pip install silero-vad (its data file only: torchaudio is not used)
"""  # noqa: INP001  a user's file that happens to be shipped, not a part of the package

from importlib.util import find_spec
from pathlib import Path

import torch

RATE = 16_000
CHUNK = 512


class SpeechDetector(torch.nn.Module):
    """One speech probability per chunk; the detector carries its state from chunk to chunk."""

    def __init__(self, detector: torch.jit.ScriptModule) -> None:
        super().__init__()
        self.detector = detector

    def forward(self, audio: torch.Tensor) -> torch.Tensor:
        """The probabilities for audio of shape (batch, samples), samples a multiple of 512."""
        self.detector.reset_states()
        chunks = audio.split(CHUNK, dim=1)
        return torch.cat([self.detector(chunk, RATE) for chunk in chunks], dim=1)


def make_model() -> torch.nn.Module:
    """The detector from the data file inside the installed silero-vad package."""
    package = find_spec("silero_vad")
    if package is None or package.origin is None:
        raise ModuleNotFoundError(name="silero_vad")
    file = Path(package.origin).parent / "data" / "silero_vad.jit"
    return SpeechDetector(torch.jit.load(str(file), map_location="cpu")).eval()


def make_inputs() -> torch.Tensor:
    """A voice-like buzz that swells twice over faint noise: 31 whole chunks of one second."""
    samples = RATE // CHUNK * CHUNK
    seconds = torch.arange(samples) / RATE
    harmonics = [torch.sin(2 * torch.pi * 140 * n * seconds) / n for n in range(1, 12)]
    swell = torch.sin(2 * torch.pi * seconds).square()
    noise = torch.randn(samples, generator=torch.Generator().manual_seed(7))
    return (0.1 * swell * torch.stack(harmonics).sum(0) + 0.002 * noise)[None]
