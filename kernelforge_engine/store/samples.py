"""A few values of a stored tensor, and files that stand in for the tensor elsewhere.

A blob is a safetensors file with one tensor; this reads and writes it without torch.
"""

import base64
import binascii
import json
import random
import struct
from pathlib import Path

from kernelforge_engine import codec
from kernelforge_engine.calls import ITEM_BYTES, TensorSpec
from kernelforge_engine.evidence import Sample
from kernelforge_engine.store.blobs import blob_path

KEY = "data"
SAMPLED = "s"  # how the name of a blob that is a sample begins
VALUES = 256
WHOLE_VALUES = 4096  # of integers and booleans: a sample of places or offsets has lost their order
BYTES = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "I16": 2, "U16": 2, "F16": 2,
    "BF16": 2, "I32": 4, "U32": 4, "F32": 4, "I64": 8, "U64": 8, "F64": 8, "C64": 8, "C128": 16,
}  # fmt: skip
FLOATING = ("F", "B", "C")  # how the names of floating and complex types begin, and BOOL
DAMAGED = "the values that the cast carries of its inputs are damaged, or of other inputs"
LENGTH = struct.Struct("<Q")
# The safetensors names and struct formats of the types that normal values are made up for.
NORMAL = {"float16": ("F16", "<e"), "float32": ("F32", "<f"), "float64": ("F64", "<d")}


def sample(folder: Path, name: str) -> Sample | None:
    """Values of a blob, None where its file cannot be read."""
    try:
        with blob_path(folder, name).open("rb") as file:
            (size,) = LENGTH.unpack(file.read(LENGTH.size))
            facts = json.loads(file.read(size))[KEY]
            kind, width = str(facts["dtype"]), BYTES[facts["dtype"]]
            begin, end = facts["data_offsets"]
            start, count = LENGTH.size + size + begin, (end - begin) // width
            most = VALUES if kind != "BOOL" and kind.startswith(FLOATING) else WHOLE_VALUES
            places: range | list[int] = range(count)
            if count > most:
                places = sorted(random.Random(name).sample(range(count), VALUES))  # noqa: S311
            parts = []
            for place in places:
                file.seek(start + place * width)
                parts.append(file.read(width))
    except (OSError, KeyError, ValueError, TypeError, struct.error):
        return None
    whole = count <= most and not name.startswith(SAMPLED)
    data = base64.b64encode(b"".join(parts)).decode("ascii")
    return Sample(dtype=kind, whole=whole, data=data)


def made_up(dtype: str) -> Sample | None:
    """Normal values, or coins, in place of those of an input that nothing is known of; always the
    same ones. None for a type whose values may have to mean something, as integers do."""
    draw = random.Random(dtype)  # noqa: S311  stands for data, hides nothing
    if dtype == "bool":
        kind, data = "BOOL", bytes(draw.getrandbits(1) for _ in range(VALUES))
    elif dtype == "bfloat16":  # the upper half of a float32
        values = (struct.pack("<f", draw.gauss(0, 1)) for _ in range(VALUES))
        kind, data = "BF16", b"".join(value[2:] for value in values)
    elif dtype in NORMAL:
        kind, form = NORMAL[dtype]
        data = b"".join(struct.pack(form, draw.gauss(0, 1)) for _ in range(VALUES))
    else:
        return None
    return Sample(dtype=kind, whole=False, data=base64.b64encode(data).decode("ascii"))


def stand_in(folder: Path, values: Sample, spec: TensorSpec) -> str:
    """Write a blob that draws of a tensor can be made from; its name.

    Raises:
        ValueError: the values are not of their type, or none of that tensor.
    """
    try:
        data = base64.b64decode(values.data, validate=True)
        width = BYTES[values.dtype]
    except (binascii.Error, KeyError) as error:
        raise ValueError(DAMAGED) from error
    needed = spec.extent_bytes if values.whole else 0
    if len(data) % width or width != ITEM_BYTES[spec.dtype] or needed not in (0, len(data)):
        raise ValueError(DAMAGED)
    if spec.extent and not data:
        raise ValueError(DAMAGED)
    facts = {
        "dtype": values.dtype,
        "shape": [len(data) // width],
        "data_offsets": [0, len(data)],
    }
    header = json.dumps({KEY: facts}).encode()
    name = ("" if values.whole else SAMPLED) + codec.sha256(values.dtype.encode() + data)
    path = blob_path(folder, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(LENGTH.pack(len(header)) + header + data)
    return name
