"""An audit of decisions: the rates of every group and every combination of groups, from predictions alone."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
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
    as_scores,
    check_between,
    encode_predictions,
    encode_target,
    refuse_missing,
    rows_of_weight,
)
from fado.metrics._intervals import MeasuredRows, effective_sizes, pair_limits, ratio_limits, share_limits
from fado.metrics._rates import RATES, Rate
from fado.metrics._threshold import Budget, predicted_positive

if TYPE_CHECKING:
    import pandas as pd

    from fado.tabular import Groups, Labels, Variable

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
        for line in shown.itertuples():
            lines.append(
                f"{line.attribute}: {line.ratio} {line.value:.3f} ({line.low:.3f} to {line.high:.3f}), "
                f"{line.lowest} over {line.highest}"
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
    import pandas as pd

    from fado.tabular import one_column, weights_of

    check_between("confidence", confidence)
    check_count("min_group_size", min_group_size, 0, 10**12)
    check_count("least_shown", least_shown, 0, 10**12)
    if least_share is not None and not (isinstance(least_share, int | float) and 0 <= least_share < 1):
        raise ValueError(f"`least_share` must be in [0, 1), got {least_share!r}.")
    target = None if y_true is None else encode_target(y_true, pos_label)
    positive = None if target is None else target.is_positive
    n_rows = len(one_column(scores_or_decisions, "scores_or_decisions") if positive is None else positive)
    weights = weights_of(sample_weight, n_rows)
    if positive is not None:
        rows_of_weight(weights, positive)  # refuses a label without weight, as all metrics do
    selected, scores, how = _decide(target, scores_or_decisions, max_fpr, threshold, budget, weights)
    variables = _attributes(sensitive_features, n_rows, unknown)
    side, limits = (1 - confidence) / 2, (min_group_size, least_share, least_shown)
    parts = [
        _Part(chosen, *limits, positive, selected, weights, side)
        for number in range(1, len(variables) + 1)
        for chosen in combinations(variables, number)
    ]
    frame = pd.concat([part.groups() for part in parts], ignore_index=True)
    law, calibration = frame, None
    if scores is not None:  # the law counts scores above the median
        middle = (n_rows - 1) // 2  # no score is between the lower of two middle ones and their mean
        above = scores > np.partition(scores, middle)[middle]
        of_law = (_Part(part.variables, *limits, positive, above, weights, side) for part in parts)
        law = pd.concat([part.groups() for part in of_law], ignore_index=True)
        if positive is not None:
            of_scores = [part.calibration(scores, positive) for part in parts]
            calibration = pd.concat(of_scores, ignore_index=True)
    about = {
        "rows": len(selected),
        "positives": None if positive is None else int(positive.sum()),
        "positive_label": None if target is None else str(target.pair[1]),
        "selected": int(selected.sum()),
        **how,
        "attributes": [variable.name for variable in variables],
        "confidence": confidence,
        "min_group_size": min_group_size,
        "least_share": least_share,
        "least_shown": least_shown,
        "weighted": weights is not None,
    }
    ratios = pd.concat([part.ratios() for part in parts], ignore_index=True)
    of_parts = [part.pairs() for part in parts]  # empty of an attribute with one group
    pairs = pd.concat([one for one in of_parts if len(one)] or of_parts[:1], ignore_index=True)
    return Audit(frame, ratios, pairs, calibration, about, law)


def _decide(
    target: Labels | None,
    scores_or_decisions: Any,
    max_fpr: float,
    threshold: float | None,
    budget: Any,
    weights: Floats | None,
) -> tuple[Bools, Floats | None, dict[str, Any]]:
    """Return the selected rows, the scores if given, and how decisions were made."""
    from fado.tabular import one_column

    column = one_column(scores_or_decisions, "scores_or_decisions")
    if len(column) == 0:
        raise ValueError("`scores_or_decisions` must have at least one row, got none.")
    codes, entries = column.encode()
    refuse_missing(codes, "`scores_or_decisions` must hold a score or a decision")
    values = list(entries)
    labels = () if target is None else target.pair
    are_decisions = all(value in (0, 1) for value in values) or all(value in labels for value in values)
    if not are_decisions and column.levels is not None:
        shown = ", ".join(map(repr, values[:4])) + (", ..." if len(values) > 4 else "")
        raise ValueError(f"Decisions must be of two values, 0 and 1 or labels, got {shown}: pass 0 and 1.")
    if are_decisions:
        if threshold is not None or budget is not None:
            raise ValueError(
                "`threshold` and `budget` are for scores, and these are decisions: leave them out."
            )
        if target is None:
            selected = np.array([value == 1 for value in values], dtype=np.bool_)[codes]
        else:
            selected = encode_predictions(scores_or_decisions, target)
        return selected, None, {"decided_by": "decisions"}
    positive = np.zeros(len(column), dtype=np.bool_) if target is None else target.is_positive
    scores = as_scores(scores_or_decisions, len(positive))
    outside = (scores < 0) | (scores > 1)
    if outside.any():
        row = int(np.argmax(outside))
        raise ValueError(
            f"Scores must be in [0, 1], got {scores[row]:g} in row {row}: scale them, or pass "
            "decisions of 0 and 1."
        )
    limit = Budget.read(budget, max_fpr, threshold=threshold)
    if threshold is None and target is None and limit.kind == "fpr":
        raise ValueError(
            "Without labels no false-positive rate is known: pass `threshold`, or a `budget` of rows."
        )
    at, made = threshold, "given"
    if at is None:
        at, made = limit.threshold(positive, scores, weights), f"{limit.kind} {limit.limit:g}"
    how = {"decided_by": "scores", "threshold": float(at), "threshold_from": made}
    return predicted_positive(scores, at), scores, how


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
    for column in columns:
        if len(column) != n_rows:
            raise ValueError(
                f"Protected attribute {column.name!r} has {len(column)} rows, and there are {n_rows} "
                "decisions: pass the same rows."
            )
    variables = [variable_from(column) for column in columns]
    check_known(variables)
    return variables


class _Part:
    """The groups of one attribute or of one combination."""

    def __init__(
        self,
        variables: tuple[Variable, ...],
        min_group_size: int,
        least_share: float | None,
        least_shown: int,
        positive: Bools | None,
        selected: Bools,
        weights: Floats | None,
        side: float,
    ) -> None:
        from fado.tabular import group_rows

        self.variables = variables
        self._positive, self._selected, self._weights, self._side = positive, selected, weights, side
        self._name = " and ".join(variable.name for variable in variables)
        groups: Groups = group_rows(variables, appearance=True)
        self._codes, self._names, self._sizes = groups.codes, groups.titles, groups.sizes
        self._least_shown, self._hidden = least_shown, self._sizes < least_shown
        self._reasons = _reasons(groups, min_group_size, least_share, least_shown)
        self._compared = np.array([not reason for reason in self._reasons], dtype=np.bool_)
        counted = MeasuredRows(
            np.zeros_like(selected) if positive is None else positive,
            selected.astype(np.float64),
            self._codes,
            len(groups),
            weights,
            threshold=1.0,
        )
        nothing = np.full(len(groups), np.nan), np.zeros(len(groups))
        self._shares = {
            name: nothing if positive is None and name != "selection_rate" else counted.rates(rate)
            for name, rate in _RATES.items()
        }

    def groups(self) -> pd.DataFrame:
        """Return one line per group; that of the rows whose group is unknown is the last."""
        import pandas as pd

        columns: dict[str, Any] = {"attribute": self._name, "group": self._names, "rows": self._sizes}
        for name, rows in (("positives", self._positive), ("selected", self._selected)):
            counts: Any = np.nan
            if rows is not None:
                counts = np.bincount(self._codes[rows], minlength=len(self._names))
            columns[name] = np.where(self._hidden, np.nan, counts) if self._hidden.any() else counts
        for rate, (shares, sizes) in self._shares.items():
            limits = (shares, *share_limits(shares, sizes, self._side))
            for end, values in zip(("", "_low", "_high"), limits, strict=True):
                columns[f"{rate}{end}"] = np.where(self._hidden, np.nan, values)
        for end, values in zip(("", "_low", "_high"), self._impact(), strict=True):
            columns[f"impact_ratio{end}"] = values
        return pd.DataFrame({**columns, "compared": self._compared, "reason": self._reasons})

    def _impact(self) -> tuple[Floats, Floats, Floats]:
        """Return each compared group's selection rate over the highest one, with limits over all pairs."""
        ratio, low, high = (np.full(len(self._names), np.nan) for _ in range(3))
        groups, shares, sizes = self._measured("selection_rate")
        best = shares.max(initial=0.0)
        if best > 0:
            ratio[groups] = shares / best
        if best > 0 and len(groups) > 1:
            every, apart = np.arange(len(groups)), ~np.eye(len(groups), dtype=np.bool_)
            ends = share_limits(shares, sizes, self._side)
            lower = np.where(apart, pair_limits(shares, *ends, every), np.inf)
            ends = share_limits(shares, sizes, self._side / (len(groups) - 1))
            upper = np.where(apart, pair_limits(shares, *ends, every, upper=True), np.inf)
            low[groups], high[groups] = (np.minimum(limits.min(axis=1), 1.0) for limits in (lower, upper))
        return ratio, low, high

    def _measured(self, rate: str) -> tuple[NDArray[np.intp], Floats, Floats]:
        """Return the compared groups that have the rate, their rates and their sizes."""
        shares, sizes = self._shares[rate]
        groups = np.flatnonzero(self._compared & np.isfinite(shares))
        return groups, shares[groups], sizes[groups]

    def ratios(self) -> pd.DataFrame:
        """Return the lowest over the highest group rate, for each rate, and these two groups."""
        import pandas as pd

        lines = []
        for rate in _RATES:
            groups, shares, sizes = self._measured(rate)
            lacking = np.flatnonzero(self._compared & np.isnan(self._shares[rate][0]))
            reason = ""
            if rate != "selection_rate" and self._positive is None:
                reason = "there are no labels"
            elif self._compared.sum() < 2:
                reason = "fewer than two groups are compared"
            elif len(lacking):
                empty = "nobody selected" if rate == "precision" else f"no {_RATES[rate].members}"
                reason = f"{empty} in {', '.join(self._names[group] for group in lacking)}"
            elif shares.max() == 0:
                reason = _NO_EVENTS[rate]
            values: tuple[Any, ...] = (np.nan, np.nan, np.nan, "", "")
            if not reason:
                ends = (self._names[groups[at]] for at in (np.argmin(shares), np.argmax(shares)))
                values = (shares.min() / shares.max(), *ratio_limits(shares, sizes, self._side), *ends)
            lines.append((self._name, f"{rate}_ratio", *values, reason))
        columns = ["attribute", "ratio", "value", "low", "high", "lowest", "highest", "reason"]
        return pd.DataFrame(lines, columns=columns)

    def pairs(self) -> pd.DataFrame:
        """Return the ratio and difference of every pair of compared groups, for every rate."""
        import pandas as pd

        columns = ["attribute", "rate", "group", "other", "ratio", "ratio_low", "ratio_high"]
        columns += ["difference", "difference_low", "difference_high"]
        lines = []
        for rate in _RATES:
            groups, shares, sizes = self._measured(rate)
            low, high = share_limits(shares, sizes, self._side)
            every = np.arange(len(groups))
            least, most = (pair_limits(shares, low, high, every, upper=end) for end in (False, True))
            for i, j in combinations(range(len(groups)), 2):
                names = self._names[groups[i]], self._names[groups[j]]
                ratio = (shares[i] / shares[j], least[i, j], most[i, j]) if shares[j] > 0 else (np.nan,) * 3
                gap = shares[i] - shares[j]
                # Newcombe's limits of a difference, from those of the two shares
                down = np.hypot(shares[i] - low[i], high[j] - shares[j])
                up = np.hypot(high[i] - shares[i], shares[j] - low[j])
                lines.append((self._name, rate, *names, *ratio, gap, gap - down, gap + up))
        return pd.DataFrame(lines, columns=columns).replace({np.inf: np.nan})

    def calibration(self, scores: Floats, positive: Bools) -> pd.DataFrame:
        """Return the share of positives in bins of scores, by group."""
        import pandas as pd

        edges = np.unique(np.quantile(scores, np.linspace(0, 1, _BINS + 1)[1:-1], method="inverted_cdf"))
        bins = np.searchsorted(edges, scores, side="left")
        lines = []
        for group, number in product(np.flatnonzero(self._compared), range(len(edges) + 1)):
            rows = (self._codes == group) & (bins == number)
            weights = np.ones(int(rows.sum())) if self._weights is None else self._weights[rows]
            where = self._name, self._names[group], number + 1, len(weights)
            if 0 < len(weights) < self._least_shown:
                lines.append((*where, *(np.nan,) * 4))
            elif weights.any():
                share = np.average(positive[rows], weights=weights)
                sums = (
                    weights @ positive[rows],
                    weights.sum(),
                    weights**2 @ positive[rows],
                    weights @ weights,
                )
                limits = share_limits(np.asarray(share), effective_sizes(*map(np.asarray, sums)), self._side)
                mean = float(np.average(scores[rows], weights=weights))
                lines.append((*where, mean, share, *map(float, limits)))
        columns = ["attribute", "group", "bin", "rows", "mean_score", "positives"]
        return pd.DataFrame(lines, columns=[*columns, "positives_low", "positives_high"])


def _reasons(
    groups: Groups, min_group_size: int, least_share: float | None, least_shown: int
) -> tuple[str, ...]:
    """Explain why groups are not compared; empty for those that are."""
    from fado.tabular import SMALL_SHARE

    known = len(groups.codes) - (0 if groups.unknown is None else groups.sizes[groups.unknown])
    sentences = []
    for size, reason in zip(groups.sizes.tolist(), groups.reasons(min_group_size), strict=True):
        rows, sentence = f"{size:,} {'row' if size == 1 else 'rows'}", ""
        if reason == "unknown":
            sentence = "the group is unknown"
        elif size < least_shown:
            sentence = f"{rows}: fewer than {least_shown}, too few to be shown"
        elif least_share is not None:
            if size / known < least_share:
                share = f"{100 * size / known:.2g} % of those whose group is known"
                sentence = f"{rows}, {share}: less than {100 * least_share:g} %"
        elif reason == "small":
            share = f"{100 * size / len(groups.codes):.2g} % of all"
            sentence = f"{rows}, {share}: fewer than {min_group_size} and less than {100 * SMALL_SHARE:g} %"
        sentences.append(sentence)
    return tuple(sentences)


def _records(frame: pd.DataFrame) -> list[dict[Any, Any]]:
    """Return the rows of a frame as plain data, None where a number is undefined."""
    return [
        {
            name: None if isinstance(value, float) and not np.isfinite(value) else value
            for name, value in row.items()
        }
        for row in frame.to_dict("records")
    ]
