"""Text, pictures and sound as inputs of a Hugging Face model, by its own processors if it has."""

from dataclasses import dataclass
from typing import Any

import torch

from kernelforge_engine.errors import InputsUnusable
from kernelforge_engine.worker.ways import made_up
from kernelforge_engine.worker.ways.given import STEP, plain_picture
from kernelforge_engine.worker.ways.hub import Source, library
from kernelforge_engine.worker.ways.ready import described, dtype_of

PREPROCESSOR = ("preprocessor_config.json", "processor_config.json")
TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "vocab.json", "vocab.txt", "spiece.model")


@dataclass(frozen=True, kw_only=True)
class Processors:
    """The processors in a model's folder; without one, plain tensors of a picture or a sound."""

    source: Source
    model: torch.nn.Module
    generates: bool

    def text(self, entry: str, text: str) -> dict[str, Any]:
        """The inputs for a text.

        Raises:
            InputsUnusable: the model has no tokenizer.
        """
        if not self._has(TOKENIZER):
            why = "a text needs a tokenizer, and this model comes with none"
            raise InputsUnusable(entry=entry, why=why, step=STEP)
        return self._run(entry, "AutoTokenizer", lambda own: own(text, return_tensors="pt"))

    def picture(self, entry: str, picture: Any) -> dict[str, Any]:
        """The inputs for a Pillow picture.

        Raises:
            InputsUnusable: the model's processor refuses it.
        """
        if self._has(PREPROCESSOR):
            return self._run(
                entry, "AutoImageProcessor", lambda own: own(images=picture, return_tensors="pt")
            )
        shape = made_up.picture_shape(self.model)
        if shape is not None:
            picture = picture.convert("L" if shape[0] == 1 else "RGB").resize(shape[:0:-1])
        pixels = plain_picture(picture, dtype_of(self.model))
        return self._complete({made_up.main_input(self.model): pixels})

    def sound(self, entry: str, samples: torch.Tensor, rate: int) -> dict[str, Any]:
        """The inputs for mono samples from -1 to 1.

        Raises:
            InputsUnusable: the model's processor refuses it.
        """
        if self._has(PREPROCESSOR):
            return self._run(
                entry,
                "AutoFeatureExtractor",
                lambda own: own(samples.numpy(), sampling_rate=rate, return_tensors="pt"),
            )
        name = made_up.main_input(self.model)
        if name != "input_values":
            why = f"the model takes {name}, and comes with no feature extractor to make them"
            raise InputsUnusable(entry=entry, why=why, step=STEP)
        shape = (1, 1, -1) if made_up.has_channels(self.model) else (1, -1)
        return self._complete({name: samples.reshape(shape).to(dtype_of(self.model))})

    def _has(self, names: tuple[str, ...]) -> bool:
        return any((self.source.folder / name).is_file() for name in names)

    def _run(self, entry: str, kind: str, use: Any) -> dict[str, Any]:
        auto = getattr(library("transformers", f"Reading {entry}"), kind)
        try:
            own = auto.from_pretrained(self.source.folder, local_files_only=True)
            made = dict(use(own))
        except Exception as error:
            raise InputsUnusable(entry=entry, why=described(error), step=STEP) from error
        return self._complete(made)

    def _complete(self, made: dict[str, Any]) -> dict[str, Any]:
        """What the model takes of it, floating tensors in its dtype."""
        dtype = dtype_of(self.model)
        kept = {
            name: value.to(dtype) if _is_floating(value) else value
            for name, value in made.items()
            if self.generates or made_up.takes(self.model, name)
        }
        return kept | made_up.decoder_start(self.model, generates=self.generates)


def _is_floating(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()
