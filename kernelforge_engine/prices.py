"""What tokens cost: a dated table that comes with the product, and the user's own over it."""

import re
import tomllib
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kernelforge_engine.errors import BadOption
from kernelforge_engine.usage import Spending, Tally

SHIPPED = Path(__file__).with_name("prices.toml")
MILLION = 1_000_000
DATED = re.compile(r"-(\d{8}|\d{4}-\d{2}-\d{2})$")  # how makers name one release of a model


class Price(BaseModel):
    """What a million tokens of each kind cost in US dollars, and where and when that was read."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    per_million: dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]]
    read: date | None = None
    source: str = ""


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    models: dict[str, Price]


class Prices:
    """Prices by the name of a model."""

    def __init__(self, models: Mapping[str, Price]) -> None:
        self._models = dict(models)

    @classmethod
    def read(cls, own: Path | None) -> "Prices":
        """The table of the product, with the models of the user's `own` file over it.

        Raises:
            BadOption: that file is no price table.
        """
        return cls({**_read(SHIPPED), **(_read(own) if own else {})})

    def of(self, model: str) -> Price | None:
        """The price of a model, or of the model that it is a dated release of."""
        return self._models.get(model) or self._models.get(DATED.sub("", model))

    def dollars(self, model: str, tokens: Mapping[str, int]) -> float | None:
        """What tokens cost, None where that of a kind of them is not known."""
        price = self.of(model)
        used = {kind: count for kind, count in tokens.items() if count}
        if price is None or not used.keys() <= price.per_million.keys():
            return None
        return sum(price.per_million[kind] * count for kind, count in used.items()) / MILLION

    def priced(self, tally: Tally) -> Spending:
        """Sums with their dollars: those that were reported, and the table's for the rest."""
        costs = {model: self.dollars(model, used) for model, used in tally.unpriced.items()}
        unknown = tuple(sorted(model for model, cost in costs.items() if cost is None))
        known = tally.dollars + sum(cost for cost in costs.values() if cost is not None)
        return Spending(
            reports=tally.reports,
            calls=tally.calls,
            tokens=tally.tokens,
            dollars=None if unknown else known,
            known_dollars=known,
            unknown_models=unknown,
            price_dates={m: self._date(m) for m, cost in costs.items() if cost is not None},
            wall_seconds=tally.wall_seconds,
            device_seconds=tally.device_seconds,
            accepted=tally.accepted,
            wins=tally.wins,
        )

    def _date(self, model: str) -> str:
        price = self.of(model)
        return price.read.isoformat() if price and price.read else "not dated"


def _read(path: Path) -> dict[str, Price]:
    try:
        return _File.model_validate(tomllib.loads(path.read_text("utf-8"))).models
    except OSError as error:
        why = error.strerror or str(error)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        why = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    except ValueError as error:  # no TOML, or no text
        why = str(error)
    raise BadOption(
        field="KERNELFORGE_PRICES",
        value=str(path),
        why=why,
        accepted="a TOML file with [models.NAME] and per_million = { input = 1.0, ... } in each",
    )
