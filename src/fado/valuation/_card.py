"""What a valuation tells of itself: a summary, and a card for people who use the values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fado._version import __version__
from fado.valuation._result import Valuation
from fado.valuation._scale import Scale
from fado.valuation._stability import FEWEST, attributes_of, named_groups, read_stability

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["card", "shown", "summarise"]

FloatArray = npt.NDArray[np.float64]

_LONGEST = 60  # characters of a name that are shown


def summarise(valuation: Valuation) -> pd.DataFrame:
    """Summarise every variable's values, as `Valuation.summary` gives it."""
    import pandas as pd

    rows = {}
    for name in valuation.variables:
        value, scale = valuation[name], valuation.scales[name]
        quantiles = np.nanquantile(value, [0.05, 0.25, 0.5, 0.75, 0.95]) if len(value) else [np.nan] * 5
        numbers = {
            "mean": _mean(value),
            **dict(zip(["5 %", "25 %", "50 %", "75 %", "95 %"], quantiles, strict=True)),
            "std. error": _mean(valuation.field("standard_error", name)),
        }
        numbers = {what: _rounded(float(number), scale) for what, number in numbers.items()}
        agreement = round(_mean(valuation.field("agreement", name)), 3)
        rows[name] = {"kind": valuation.provenance.kind_of(name), **numbers, "agreement": agreement}
        if "epistemic" in valuation.fields:
            rows[name]["epistemic"] = round(_mean(valuation.field("epistemic", name)), 3)
    return pd.DataFrame.from_dict(rows, orient="index")


def shown(valuation: Valuation) -> tuple[str, pd.DataFrame]:
    """Give the algorithm and the summary with texts that are short and printable, whoever wrote them."""
    summary = summarise(valuation)
    summary["kind"] = [_shown(kind) for kind in summary["kind"]]
    return _shown(valuation.provenance.algorithm), summary.set_axis([_shown(name) for name in summary.index])


def _shown(text: str) -> str:
    line = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text[:_LONGEST])
    return line if len(text) <= _LONGEST else line + "..."


def _mean(values: FloatArray) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def _rounded(number: float, scale: Scale) -> float:
    """Round a value in [0, 1] to three decimals, another, such as an effect, to three significant digits."""
    return round(number, 3) if scale.is_unit else float(f"{number:.3g}")


def card(valuation: Valuation, stability: Any, sensitive_features: Any) -> str:
    """Write the card as Markdown; see `Valuation.card`."""
    from fado.reporting import card_text

    attributes = attributes_of(valuation, sensitive_features)
    if stability is None:
        stability = valuation.stability(sensitive_features=sensitive_features)
    algorithm = valuation.provenance.algorithm
    made = (
        "It is not known how they were made." if algorithm == "given" else f"They are values by {algorithm}."
    )
    content = {
        "title": f"Values of {len(valuation):,} rows",
        "lead": [f"One number per row for {_listed(valuation.variables)}. {made}"],
        "sections": [
            _meaning(valuation),
            _distribution(valuation, named_groups(attributes, len(valuation))[1:]),
            _stability(read_stability(stability)),
            _limits(valuation),
            _making(valuation),
        ],
        "footer": f"FADO {__version__}",
    }
    return card_text(content)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"{name!r}{' (the target)' if name == 'y' else ''}" for name in names)


def _meaning(valuation: Valuation) -> dict[str, Any]:
    points = []
    for name, scale in valuation.scales.items():
        kind = valuation.provenance.kind_of(name)
        ends = [f"{end:g}" for end in (scale.low, scale.high) if end is not None]
        lies = f" It lies between {' and '.join(ends)}." if len(ends) == 2 else ""
        neutral = "" if scale.neutral is None else f" {scale.neutral:g} is neutral."
        points.append(f"{name!r}{f' ({kind})' if kind else ''}: {scale.meaning}.{lies}{neutral}")
    return _section("What a value means", ["A higher value means that the row is worth more."], points)


def _distribution(valuation: Valuation, groups: Sequence[tuple[str, npt.NDArray[np.intp]]]) -> dict[str, Any]:
    points, rows = [], []
    for name, scale in valuation.scales.items():
        values = valuation[name]
        lost = int(np.isnan(values).sum())
        mean, *quartiles = _figures(values, scale)
        missing = f"; {lost:,} rows have no value" if lost else ""
        points.append(f"{name!r}: mean {mean}, quartiles {', '.join(quartiles)}{missing}.")
        rows += [
            [name, group, f"{len(members):,}", *_figures(values[members], scale)] for group, members in groups
        ]
    header = ["column", "group", "rows", "mean", "25 %", "50 %", "75 %"]
    texts = [f"Groups of fewer than {FEWEST} rows are not named."] if groups else []
    return _section("How values are distributed", texts, points, (header, rows))


def _figures(values: FloatArray, scale: Scale) -> list[str]:
    known = values[~np.isnan(values)]
    if not len(known):
        return ["none"] * 4
    numbers = [known.mean(), *np.quantile(known, [0.25, 0.5, 0.75])]
    return [f"{_rounded(float(number), scale):g}" for number in numbers]


def _stability(told: dict[str, Any]) -> dict[str, Any]:
    texts = [
        "Would the values rank rows alike if they were made again? Rank agreement is Spearman's correlation. "
        "Top overlap is the share of the highest tenth that stays there. Rows of a group are ranked among "
        "themselves."
    ]
    points = [f"{name}: {change}." for name, change in told["changes"].items()] + told["notes"]
    header = ["column", "made again with other", "group", "rows", "rank agreement", "top overlap"]
    rows = [
        [own["column"], own["variation"], own["group"], f"{own['rows']:,}"]
        + [f"{own[name]:.3f}" for name in ("rank_agreement", "top_overlap")]
        for own in told["rows"]
    ]
    if not rows:
        texts = ["It is not known whether another run would rank rows alike."]
    return _section("How stable they are", texts, points, (header, rows))


def _limits(valuation: Valuation) -> dict[str, Any]:
    points = [
        "Values are about these rows, columns and models. With others, or with the same columns prepared in "
        "another way, rows may rank otherwise.",
        "Agreement says whether another run would say the same, not whether it is right.",
        "Values of small groups rest on few rows: look at a group's own agreement before acting on its rows.",
    ]
    if all(scale.is_unit for scale in valuation.scales.values()):
        points.append("A value does not look at the row's own label: it does not find wrong labels.")
    if any(scale.is_signed for scale in valuation.scales.values()):
        points.append(
            "What removing many rows does is more than the sum of their values: train again and look."
        )
    return _section("What they do not tell", [], points)


def _making(valuation: Valuation) -> dict[str, Any]:
    told = valuation.provenance
    about: dict[str, Any] = {"algorithm": told.algorithm, **told.settings, "seed": told.seed}
    about |= {"estimators": None if told.estimators is None else "; ".join(told.estimators)}
    for what, own in (("trees", told.trees), ("learning rate", told.learning_rates)):
        about |= {f"{what} of the models of {name!r}": number for name, number in (own or {}).items()}
    for name, columns in (told.excluded_columns or {}).items():
        about[f"columns hidden from the models of {name!r}"] = ", ".join(map(repr, columns)) or "none"
    about |= {f"version of {name}": version for name, version in told.versions.items()}
    rows = [[str(name), str(value)] for name, value in about.items() if value is not None]
    return _section("How they were made", [], [], (["setting", "value"], rows))


def _section(
    title: str, texts: list[str], points: list[str], table: tuple[list[str], list[list[str]]] = ([], [])
) -> dict[str, Any]:
    return {"title": title, "texts": texts, "points": points, "header": table[0], "rows": table[1]}
