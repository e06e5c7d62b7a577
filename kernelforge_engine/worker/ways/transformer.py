"""Models of the transformers library, from a folder or a configuration."""

from typing import Any

import torch

from kernelforge_engine.worker.ways import made_up
from kernelforge_engine.worker.ways.hub import OWN_FILE, Source, library
from kernelforge_engine.worker.ways.processors import Processors
from kernelforge_engine.worker.ways.ready import Ready
from kernelforge_engine.worker.ways.weights import randomly_made

GENERATING = (
    "MODEL_FOR_CAUSAL_LM_MAPPING",
    "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING",
    "MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING",
    "MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING",
)


def transformers_model(source: Source, generate_tokens: int) -> Ready:
    """The model, its processors and made-up inputs for it.

    Raises:
        PackageMissing, ModelUnusable
    """
    model = made_model(source, generating=generate_tokens > 0)
    generates = generate_tokens > 0
    return Ready(
        model=model,
        requires=type(model).__module__,
        default=lambda: made_up.for_transformers(model, generates=generates),
        reader=Processors(source=source, model=model, generates=generates),
    )


def made_model(source: Source, *, generating: bool = False) -> Any:
    """The module alone, on its device, with its own weights or random ones.

    Raises:
        PackageMissing, ModelUnusable
    """
    library("transformers", source.name)
    with source.blamed(f"mend the configuration, or {OWN_FILE}"):
        config = _configuration(source)
        kind = _class(source, config, generating)
    if source.random:
        with source.blamed(f"mend the configuration, or {OWN_FILE}"):
            return randomly_made(lambda: kind(config), source.device, _dtype(source))
    source.must_have_weights()
    step = "save the model with save_pretrained (safetensors), or add --random-weights"
    with source.blamed(step):
        model = kind.from_pretrained(
            source.folder,
            local_files_only=True,
            use_safetensors=True,
            **{_dtype_keyword(): source.dtype or "auto"},
        )
        return model.to(source.device).eval()


def _configuration(source: Source) -> Any:
    transformers = library("transformers", source.name)
    data = source.config
    mapping = transformers.CONFIG_MAPPING
    if data.get("model_type") in mapping:
        kind = mapping[data["model_type"]]
    elif named := _named(data):
        kind = named.config_class
    else:
        raise source.unusable(why=_unknown(data), step=f"upgrade transformers, or {OWN_FILE}")
    return kind.from_dict(dict(data))


def _class(source: Source, config: Any, generating: bool) -> Any:
    """The class that the configuration names, else the library's choice for its kind."""
    transformers = library("transformers", source.name)
    named = _named(source.config)
    if named is not None and (not generating or hasattr(named, "generate")):
        return named
    wanted = GENERATING if generating else ("MODEL_MAPPING", *GENERATING)
    for name in wanted:
        mapping = getattr(transformers, name, {})
        if type(config) in mapping:
            kind = mapping[type(config)]
            return kind[0] if isinstance(kind, tuple | list) else kind
    why = "it generates nothing" if generating else _unknown(source.config)
    step = "leave --generate out" if generating else f"upgrade transformers, or {OWN_FILE}"
    raise source.unusable(why=why, step=step)


def _named(data: dict[str, Any]) -> Any:
    transformers = library("transformers", "this model")
    for name in data.get("architectures") or ():
        kind = getattr(transformers, name, None)
        if kind is not None and hasattr(kind, "config_class"):
            return kind
    return None


def _unknown(data: dict[str, Any]) -> str:
    version = library("transformers", "this model").__version__
    kind, names = data.get("model_type"), data.get("architectures")
    return f"transformers {version} knows neither its architectures {names} nor its type {kind!r}"


def _dtype(source: Source) -> torch.dtype:
    text = source.config.get("dtype") or source.config.get("torch_dtype")
    found = getattr(torch, str(text).removeprefix("torch."), None)
    own = found if isinstance(found, torch.dtype) else torch.float32
    return source.dtype or own


def _dtype_keyword() -> str:
    version = library("transformers", "this model").__version__
    return "torch_dtype" if version.startswith("4.") else "dtype"
