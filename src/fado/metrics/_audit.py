"""An audit of decisions: the rates of every group and every combination of groups, from predictions alone."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fado._checks import check_count
from fado._messages import insert_parameters
from fado._typing import Bools, Floats
from fado.metrics._evaluate import evaluate
from fado.metrics._inputs import (
    MIN_GROUP_SIZE,
    Target,
    as_scores,
    check_between,
    encode_predictions,
    encode_target,
    refuse_missing,
    rows_of_weight,
)
from fado.metrics._intervals import (
    MeasuredRows,
    effective_sizes,
    lower_limits,
    ratio_limits,
    share_limits,
    upper_limits,
)
from fado.metrics._rates import RATES, Rate
from fado.metrics._threshold import budget_of, predicted_positive

if TYPE_CHECKING:
    import pandas as pd

    from fado.tabular import Groups, Variable

MOST_ATTRIBUTES = 6  # all combinations of which are 63 tables
_BINS = 5  # of scores, for calibration
_PRECISION = Rate(
    "precision",
    "",
    "",
    "true positives",
    "predicted positives",
    None,
    True,
    lambda c: (c.true_positives, c.false_positives + c.true_positives),
)
_RATES = {name: RATES[name] for name in ("selection_rate", "tpr", "fpr", "fnr")} | {"precision": _PRECISION}
_NO_EVENTS = {  # what to say if no group has any
    "selection_rate": "nobody is selected in any group",
    "tpr": "no positive is selected in any group",
    "fpr": "no negative is selected in any group",
    "fnr": "no positive is missed in any group",
    "precision": "no positive is selected in any group",
}


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """The result of `audit`: tables of groups, ratios and pairs, and ways to write them.

    Parameters
    ----------
    frame : DataFrame
        One row per group of every attribute and of every combination of attributes: ``attribute``, ``group``,
        ``rows``, ``positives``, ``selected``, the rates ``selection_rate``, ``tpr``, ``fpr``, ``fnr`` and
        ``precision``, each with ``_low`` and ``_high``, ``impact_ratio`` (the selection rate over the highest
        one) with its interval, ``compared``, and the ``reason`` why a group is not compared. Of groups of
        fewer than `least_shown` rows, only ``rows`` are shown.
    ratios : DataFrame
        One row per attribute and rate: the lowest rate over the highest with its interval, the two groups
        that have these rates, and the ``reason`` if the ratio is undefined.
    pairs : DataFrame
        One row per attribute, rate and pair of compared groups: their ratio and difference with intervals.
    calibration : DataFrame or None
        One row per attribute, compared group and bin of scores: the ``mean_score`` and the share of
        ``positives`` with its interval. None without scores or without labels.
    about : dict
        What was audited: numbers of rows, how decisions were made, the threshold, the confidence.

    See Also
    --------
    fado.metrics.audit : Makes an audit.
    fado.metrics.by_group : Rates of the groups of one attribute, or of one combination.

    Examples
    --------
    >>> from fado.metrics import audit
    >>> y_true, decisions = [0, 1, 1, 0, 1, 1], [0, 1, 1, 1, 1, 0]
    >>> sex = {"sex": list("mmmfff")}
    >>> report = audit(y_true, decisions, sensitive_features=sex, least_shown=0)
    >>> print(str(report).splitlines()[0])
    Audit of 6 rows by sex, 4 selected
    >>> line = report.ratios.set_index("ratio").loc["tpr_ratio"]
    >>> float(line["value"]), line["lowest"], line["highest"]
    (0.5, 'f', 'm')
    """

    frame: pd.DataFrame
    ratios: pd.DataFrame
    pairs: pd.DataFrame
    calibration: pd.DataFrame | None
    about: dict[str, Any]
    _law: pd.DataFrame

    def local_law_144(self) -> pd.DataFrame:
        """Return the tables that New York's Local Law 144 (6 RCNY 5-301) requires, without a verdict.

        Returns
        -------
        DataFrame
            One row per category: ``attribute``, ``category``, ``applicants``, ``selected``, the
            ``selection_rate`` and the ``impact_ratio``. Where scores were audited, the rate is the
            ``scoring_rate``, the share of scores above the median of all rows, and ``selected`` are those.
            Categories that are not compared have no impact ratio; ``note`` says why.
        """
        columns = ["attribute", "group", "rows", "selected", "selection_rate", "impact_ratio", "reason"]
        named = {"group": "category", "rows": "applicants", "reason": "note"}
        if self.about["decided_by"] == "scores":
            named["selection_rate"] = "scoring_rate"
        return self._law[columns].rename(columns=named)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data, None where a number is undefined."""
        frames = {"groups": self.frame, "ratios": self.ratios, "pairs": self.pairs}
        if self.calibration is not None:
            frames["calibration"] = self.calibration
        return {"about": self.about} | {name: _records(frame) for name, frame in frames.items()}

    def write_csv(self, path: str | os.PathLike[str]) -> None:
        """Write `frame` as CSV."""
        self._write(path, self.frame.to_csv(index=False))

    def write_json(self, path: str | os.PathLike[str]) -> None:
        """Write the result of `to_dict` as JSON."""
        self._write(path, json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n")

    def write_html(self, path: str | os.PathLike[str]) -> None:
        """Write a page that makes no requests: tables, charts, and how to read them."""
        self._write(path, self._page())

    def _page(self) -> str:
        from fado.reporting import render_page

        return render_page("audit.html", self.to_dict() | {"local_law_144": _records(self.local_law_144())})

    def _repr_html_(self) -> str:
        from fado.reporting import page_in_frame

        return page_in_frame(self._page(), 900)

    def __repr__(self) -> str:
        about, shown = self.about, self.ratios[self.ratios["reason"] == ""]
        attributes = ", ".join(map(str, about["attributes"]))
        lines = [f"Audit of {about['rows']:,} rows by {attributes}, {about['selected']:,} selected"]
        for own in shown.itertuples():
            lines.append(
                f"{own.attribute}: {own.ratio} {own.value:.3f} ({own.low:.3f} to {own.high:.3f}), "
                f"{own.lowest} over {own.highest}"
            )
        return "\n".join(lines)

    def _write(self, path: str | os.PathLike[str], text: str) -> None:
        from fado._storage import replacing

        with replacing(path, "The audit") as temporary:
            temporary.write_text(text, encoding="utf-8")


@insert_parameters(evaluate)
def audit(
    y_true: Any,
    scores_or_decisions: Any,
    *,
    sensitive_features: Any,
    unknown: Any = None,
    max_fpr: float = 0.05,
    threshold: float | None = None,
    budget: Any = None,
    pos_label: Any = None,
    sample_weight: Any = None,
    min_group_size: int = MIN_GROUP_SIZE,
    least_share: float | None = None,
    least_shown: int = 10,
    confidence: float = 0.95,
) -> Audit:
    """Audit decisions by group, from predictions alone: no model and no training rows are needed.

    Every protected attribute is audited, and every combination of several. Rows whose group is unknown are
    counted on a separate line, ``unknown``, and are not compared.

    Parameters
    ----------
    y_true : array-like of shape (n,) or None
        True labels, of exactly two classes. None audits selection rates alone.
    scores_or_decisions : array-like of shape (n,)
        Decisions (booleans, 0 and 1, or the labels of `y_true`), which are used as they are; or scores in
        [0, 1], which a threshold turns into decisions.
    sensitive_features : Series, array, list, DataFrame or dict
        One protected attribute or several. An attribute of numbers may have at most 20 different ones.
    {unknown}
    max_fpr : float, default=0.05
        For scores: the share of negatives that may be selected. It sets the threshold on these rows.
    threshold : float, optional
        For scores: select rows where ``scores >= threshold``. The budget then has no effect.
    {budget, pos_label}
    sample_weight : array-like of shape (n,), optional
        How many rows each row represents. Rates are then shares of the total weight; counts are still rows.
    min_group_size : int, default=30
        Groups with fewer rows than this that are also less than 1 % of the rows are not compared; 0 compares
        all groups.
    least_share : float, optional
        Use this instead of `min_group_size`: groups with a smaller share of the rows whose group is known are
        not compared. New York's Local Law 144 allows 0.02.
    least_shown : int, default=10
        Of groups with fewer rows than this only the number of rows is shown, because rates of a few rows tell
        about single people; they are not compared. 0 shows all groups.
    {confidence}

    Returns
    -------
    Audit
        With `frame`, `ratios`, `pairs`, `calibration`, and ways to write them.

    Notes
    -----
    Intervals of rates are those of Clopper and Pearson (1934). Intervals of ratios are computed from them
    over all pairs of groups, and are valid whichever two groups have the lowest and highest rate in the
    population. All intervals are for the threshold in use.

    See Also
    --------
    fado.metrics.evaluate : All metrics of a model at a budget, with intervals that account for its threshold.

    References
    ----------
    C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial limits illustrated in the case of the
    binomial", Biometrika 26 (1934).

    Examples
    --------
    >>> from fado.metrics import audit
    >>> hired = [1, 1, 1, 0, 1, 0, 0, 0]
    >>> sex = {"sex": list("mmmmffff")}
    >>> report = audit(None, hired, sensitive_features=sex, least_shown=0)
    >>> columns = ["attribute", "group", "rows", "selection_rate", "impact_ratio"]
    >>> report.frame[columns].round(2)
      attribute group  rows  selection_rate  impact_ratio
    0       sex     m     4            0.75          1.00
    1       sex     f     4            0.25          0.33
    """
    from fado.tabular import one_column, weights_of

    check_between("confidence", confidence)
    check_count("min_group_size", min_group_size, 0, 10**12)
    check_count("least_shown", least_shown, 0, 10**12)
    if least_share is not None and not (isinstance(least_share, int | float) and 0 <= least_share < 1):
        raise ValueError(f"`least_share` must be in [0, 1), got {least_share!r}.")
    target = None if y_true is None else encode_target(y_true, pos_label)
    positive, label = (None, None) if target is None else (target.positive, str(target.pos_label))
    n_rows = len(one_column(scores_or_decisions, "scores_or_decisions") if positive is None else positive)
    weights = weights_of(sample_weight, n_rows)
    if positive is not None:
        rows_of_weight(weights, positive)  # refuses a label without weight, as all metrics do
    selected, scores, about = _decide(target, scores_or_decisions, max_fpr, threshold, budget, weights)
    variables = _attributes(sensitive_features, n_rows, unknown)
    rows = _Rows(positive, selected, scores, weights, 1 - confidence)
    limits = min_group_size, least_share, least_shown
    parts = [_Part(rows, own, *limits) for own in _combinations(variables)]
    frame = _joined(part.groups() for part in parts)
    law, calibration = frame, None
    if scores is not None:  # the law counts scores above the median
        middle = (n_rows - 1) // 2  # no score is between the lower of two middle ones and their mean
        above = replace(rows, selected=scores > np.partition(scores, middle)[middle])
        law = _joined(_Part(above, own, *limits).groups() for own in _combinations(variables))
        if positive is not None:
            calibration = _joined(part.calibration() for part in parts)
    about = {
        "rows": len(selected),
        "positives": None if positive is None else int(positive.sum()),
        "positive_label": label,
        "selected": int(selected.sum()),
        **about,
        "attributes": [own.name for own in variables],
        "confidence": confidence,
        "min_group_size": min_group_size,
        "least_share": least_share,
        "least_shown": least_shown,
        "weighted": weights is not None,
    }
    ratios, pairs = _joined(part.ratios() for part in parts), _joined(part.pairs() for part in parts)
    return Audit(frame, ratios, pairs, calibration, about, law)


def _joined(frames: Iterable[pd.DataFrame]) -> pd.DataFrame:
    import pandas as pd

    return pd.concat(list(frames), ignore_index=True)


def _decide(
    target: Target | None,
    given: Any,
    max_fpr: float,
    threshold: float | None,
    budget: Any,
    weights: Floats | None,
) -> tuple[Bools, Floats | None, dict[str, Any]]:
    """Return the selected rows, the scores if given, and how decisions were made."""
    from fado.tabular import one_column

    positive = None if target is None else target.positive
    column = one_column(given, "scores_or_decisions")
    if len(column) == 0:
        raise ValueError("`scores_or_decisions` must have at least one row, got none.")
    codes, values = column.encode()
    refuse_missing(codes, "`scores_or_decisions` must hold a score or a decision")
    found = list(values)
    labels = [] if target is None else [target.neg_label, target.pos_label]
    are_decisions = all(value in (0, 1) for value in found) or all(value in labels for value in found)
    if not are_decisions and column.levels is not None:
        shown = ", ".join(map(repr, found[:4])) + (", ..." if len(found) > 4 else "")
        raise ValueError(f"Decisions must be of two values, 0 and 1 or labels, got {shown}: pass 0 and 1.")
    if are_decisions:
        if threshold is not None or budget is not None:
            raise ValueError(
                "`threshold` and `budget` are for scores, and these are decisions: leave them out."
            )
        if target is None:
            selected = np.array([value == 1 for value in found], dtype=np.bool_)[codes]
        else:
            selected = encode_predictions(given, target)
        return selected, None, {"decided_by": "decisions"}
    n_rows = len(column) if positive is None else len(positive)
    scores = as_scores(given, n_rows)
    outside = (scores < 0) | (scores > 1)
    if outside.any():
        row = int(np.argmax(outside))
        raise ValueError(
            f"Scores must be in [0, 1], got {scores[row]:g} in row {row}: scale them, or pass "
            "decisions of 0 and 1."
        )
    limit = budget_of(budget, max_fpr, threshold)
    if threshold is None and target is None and limit.kind == "fpr":
        raise ValueError(
            "Without labels no false-positive rate is known: pass `threshold`, or a `budget` of rows."
        )
    at, made = threshold, "given"
    if at is None:
        counted = np.zeros(n_rows, dtype=np.bool_) if positive is None else positive
        at = limit.threshold(counted, scores, weights)
        made = f"{limit.kind} {limit.limit:g}"
    about = {"decided_by": "scores", "threshold": float(at), "threshold_from": made}
    return predicted_positive(scores, at), scores, about


def _attributes(sensitive_features: Any, n_rows: int, unknown: Any) -> list[Variable]:
    """Read the protected attributes; refuse those of another length, of numbers, and all unknown ones."""
    from fado.tabular import attribute_columns, check_known, variable_from

    columns = attribute_columns(sensitive_features, unknown)
    if not columns:
        raise ValueError("`sensitive_features` must have at least one column, got none.")
    if len(columns) > MOST_ATTRIBUTES:
        raise ValueError(
            f"`sensitive_features` has {len(columns)} attributes, too many to combine: pass "
            f"at most {MOST_ATTRIBUTES}."
        )
    variables = []
    for column in columns:
        if len(column) != n_rows:
            raise ValueError(
                f"Protected attribute {column.name!r} has {len(column)} rows, and there are {n_rows} "
                "decisions: pass the same rows."
            )
        variables.append(variable_from(column))
    check_known(variables)
    return variables


def _combinations(variables: Sequence[Variable]) -> Iterator[tuple[Variable, ...]]:
    """Yield every attribute, then every combination, those of few attributes first."""
    for number in range(1, len(variables) + 1):
        yield from combinations(variables, number)


@dataclass(frozen=True, eq=False)
class _Rows:
    """All rows: labels if known, decisions, scores if given, weights, and the error of intervals."""

    positive: Bools | None
    selected: Bools
    scores: Floats | None
    weights: Floats | None
    error: float


class _Part:
    """The groups of one attribute or of one combination."""

    def __init__(
        self,
        rows: _Rows,
        variables: tuple[Variable, ...],
        min_group_size: int,
        least_share: float | None,
        least_shown: int,
    ) -> None:
        from fado.tabular import group_rows

        self._rows, self._side, self._least_shown = rows, rows.error / 2, least_shown
        self.name = " and ".join(own.name for own in variables)
        groups: Groups = group_rows(variables, appearance=True)
        self._codes, self._names, self._sizes = groups.codes, groups.titles, groups.sizes
        self._hidden = self._sizes < least_shown
        self._reasons = _reasons(groups, min_group_size, least_share, least_shown)
        self._compared = np.array([not reason for reason in self._reasons], dtype=np.bool_)
        counted = MeasuredRows(
            np.zeros_like(rows.selected) if rows.positive is None else rows.positive,
            rows.selected.astype(np.float64),
            self._codes,
            len(groups),
            rows.weights,
            threshold=1.0,
        )
        nothing = np.full(len(groups), np.nan), np.zeros(len(groups))
        self._shares = {
            name: nothing if rows.positive is None and name != "selection_rate" else counted.shares(rate)
            for name, rate in _RATES.items()
        }

    def groups(self) -> pd.DataFrame:
        """Return one line per group; that of the rows whose group is unknown is the last."""
        import pandas as pd

        def counted(rows: Bools | None) -> NDArray[Any]:
            if rows is None:
                return np.full(len(self._names), np.nan)
            counts = np.bincount(self._codes[rows], minlength=len(self._names))
            return np.where(self._hidden, np.nan, counts) if self._hidden.any() else counts

        columns: dict[str, Any] = {
            "attribute": self.name,
            "group": self._names,
            "rows": self._sizes,
            "positives": counted(self._rows.positive),
            "selected": counted(self._rows.selected),
        }
        for rate, (shares, sizes) in self._shares.items():
            limits = (shares, *share_limits(shares, sizes, self._side))
            for end, own in zip(("", "_low", "_high"), limits, strict=True):
                columns[f"{rate}{end}"] = np.where(self._hidden, np.nan, own)
        for end, own in zip(("", "_low", "_high"), self._impact(), strict=True):
            columns[f"impact_ratio{end}"] = own
        return pd.DataFrame({**columns, "compared": self._compared, "reason": self._reasons})

    def _impact(self) -> tuple[Floats, Floats, Floats]:
        """Return each compared group's selection rate over the highest one, with limits over all pairs."""
        shares, sizes = self._shares["selection_rate"]
        ratio, low, high = (np.full(len(shares), np.nan) for _ in range(3))
        own = np.flatnonzero(self._compared & np.isfinite(shares))
        best = shares[own].max(initial=0.0)
        if best == 0:
            return ratio, low, high
        ratio[own] = shares[own] / best
        if len(own) < 2:
            return ratio, low, high
        every = np.arange(len(own))
        apart = ~np.eye(len(own), dtype=np.bool_)
        ends = share_limits(shares[own], sizes[own], self._side)
        lower = np.where(apart, lower_limits(shares[own], *ends, every), np.inf)
        ends = share_limits(shares[own], sizes[own], self._side / (len(own) - 1))
        upper = np.where(apart, upper_limits(shares[own], *ends, every), np.inf)
        low[own], high[own] = np.minimum(lower.min(axis=1), 1.0), np.minimum(upper.min(axis=1), 1.0)
        return ratio, low, high

    def _measured(self, rate: str) -> tuple[list[str], Floats, Floats]:
        """Return names, rates and sizes of the compared groups that have the rate."""
        shares, sizes = self._shares[rate]
        own = np.flatnonzero(self._compared & np.isfinite(shares))
        return [self._names[group] for group in own], shares[own], sizes[own]

    def ratios(self) -> pd.DataFrame:
        """Return the lowest over the highest group rate, for each rate, and these two groups."""
        import pandas as pd

        told = []
        for rate in _RATES:
            names, shares, sizes = self._measured(rate)
            reason = self._why_undefined(rate, shares)
            found: tuple[Any, ...] = (np.nan, np.nan, np.nan, "", "")
            if not reason:
                ends = names[int(np.argmin(shares))], names[int(np.argmax(shares))]
                found = (shares.min() / shares.max(), *ratio_limits(shares, sizes, self._side), *ends)
            told.append((self.name, f"{rate}_ratio", *found, reason))
        columns = ["attribute", "ratio", "value", "low", "high", "lowest", "highest", "reason"]
        return pd.DataFrame(told, columns=columns)

    def _why_undefined(self, rate: str, shares: Floats) -> str:
        if rate != "selection_rate" and self._rows.positive is None:
            return "there are no labels"
        if self._compared.sum() < 2:
            return "fewer than two groups are compared"
        if len(shares) < self._compared.sum():
            lacking = np.flatnonzero(self._compared & np.isnan(self._shares[rate][0]))
            empty = "nobody selected" if rate == "precision" else f"no {_RATES[rate].members}"
            return f"{empty} in {', '.join(self._names[group] for group in lacking)}"
        return _NO_EVENTS[rate] if shares.max() == 0 else ""

    def pairs(self) -> pd.DataFrame:
        """Return the ratio and difference of every pair of compared groups, for every rate."""
        import pandas as pd

        columns = ["attribute", "rate", "group", "other", "ratio", "ratio_low", "ratio_high"]
        columns += ["difference", "difference_low", "difference_high"]
        told = []
        for rate in _RATES:
            names, shares, sizes = self._measured(rate)
            low, high = share_limits(shares, sizes, self._side)
            every = np.arange(len(names))
            least, most = lower_limits(shares, low, high, every), upper_limits(shares, low, high, every)
            for i, j in combinations(range(len(names)), 2):
                ratio = (shares[i] / shares[j], least[i, j], most[i, j]) if shares[j] > 0 else (np.nan,) * 3
                gap = shares[i] - shares[j]
                # Newcombe's limits of a difference, from those of the two shares
                down = np.hypot(shares[i] - low[i], high[j] - shares[j])
                up = np.hypot(high[i] - shares[i], shares[j] - low[j])
                told.append((self.name, rate, names[i], names[j], *ratio, gap, gap - down, gap + up))
        return pd.DataFrame(told, columns=columns).replace({np.inf: np.nan})

    def calibration(self) -> pd.DataFrame:
        """Return the share of positives in bins of scores, by group."""
        import pandas as pd

        scores, positive = self._rows.scores, self._rows.positive
        assert scores is not None and positive is not None  # noqa: S101, PT018 - typing
        edges = np.unique(np.quantile(scores, np.linspace(0, 1, _BINS + 1)[1:-1], method="inverted_cdf"))
        bins = np.searchsorted(edges, scores, side="left")
        told = []
        for group, number in product(np.flatnonzero(self._compared), range(len(edges) + 1)):
            own = (self._codes == group) & (bins == number)
            weights = np.ones(int(own.sum())) if self._rows.weights is None else self._rows.weights[own]
            if 0 < len(weights) < self._least_shown:
                told.append((self.name, self._names[group], number + 1, len(weights), *(np.nan,) * 4))
            elif weights.any():
                share = np.average(positive[own], weights=weights)
                sums = (weights @ positive[own], weights.sum(), weights**2 @ positive[own], weights @ weights)
                limits = share_limits(np.asarray(share), effective_sizes(*map(np.asarray, sums)), self._side)
                mean = float(np.average(scores[own], weights=weights))
                where = self.name, self._names[group], number + 1, len(weights)
                told.append((*where, mean, share, *map(float, limits)))
        columns = ["attribute", "group", "bin", "rows", "mean_score", "positives"]
        return pd.DataFrame(told, columns=[*columns, "positives_low", "positives_high"])


def _reasons(
    groups: Groups, min_group_size: int, least_share: float | None, least_shown: int
) -> tuple[str, ...]:
    """Explain why groups are not compared; empty for those that are."""
    from fado.tabular import SMALL_SHARE

    known = len(groups.codes) - (0 if groups.unknown is None else groups.sizes[groups.unknown])
    told = []
    for size, reason in zip(groups.sizes.tolist(), groups.reasons(min_group_size), strict=True):
        rows = f"{size:,} {'row' if size == 1 else 'rows'}"
        if reason == "unknown":
            told.append("the group is unknown")
        elif size < least_shown:
            told.append(f"{rows}: fewer than {least_shown}, too few to be shown")
        elif least_share is not None:
            below = size / known < least_share
            share = f"{100 * size / known:.2g} % of those whose group is known"
            told.append(f"{rows}, {share}: less than {100 * least_share:g} %" if below else "")
        elif reason == "small":
            share = f"{100 * size / len(groups.codes):.2g} % of all"
            told.append(f"{rows}, {share}: fewer than {min_group_size} and less than {100 * SMALL_SHARE:g} %")
        else:
            told.append("")
    return tuple(told)


def _records(frame: pd.DataFrame) -> list[dict[Any, Any]]:
    """Return the rows of a frame as plain data."""
    return [{name: _plain(value) for name, value in row.items()} for row in frame.to_dict("records")]


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value
