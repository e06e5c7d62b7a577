"""Canonical bytes, hashes, and the border between JSON and records."""

import hashlib
import json
from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter

T = TypeVar("T")


def adapter(kind: Any) -> TypeAdapter[Any]:
    """The validator of one record type, built once."""
    return _built(kind)


@cache
def _built(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def dump(value: object) -> Any:
    """A record as plain JSON values."""
    return adapter(type(value)).dump_python(value, mode="json")


def dumps(value: object) -> str:
    """A record, or plain JSON values, as canonical text: sorted keys, no spaces, no NaN."""
    plain = value if isinstance(value, dict | list | str | int | float | None) else dump(value)
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False)


def load(kind: type[T], value: object) -> T:
    """Plain JSON values as a record; a mismatch raises pydantic's ValidationError."""
    record: T = adapter(kind).validate_python(value)
    return record


def loads(kind: type[T], text: str | bytes) -> T:
    """JSON text as a record; a mismatch raises pydantic's ValidationError."""
    record: T = adapter(kind).validate_json(text)
    return record


def sha256(data: bytes | str) -> str:
    """The hexadecimal SHA-256 of bytes, or of text in UTF-8."""
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()
