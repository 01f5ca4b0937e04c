"""The models to choose from: each intervention's best above a line, or the one that comes closest to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fado.experiment.config import ratio_name
from fado.experiment.results._looks import describe_settings

if TYPE_CHECKING:
    import pandas as pd

    from fado.experiment._results import Results

__all__ = ["winners_of"]

ENDS = ("", "_low", "_high")


def winners_of(results: Results, metric: str, at_least: float, attribute: str | None) -> pd.DataFrame:
    """Do the work of `Results.winners`."""
    import pandas as pd

    told = results.frame.assign(settings=describe_settings(results.frame))
    shown = {"tpr": "test_tpr", "ratio": f"test_{ratio_name(metric, attribute)}"}
    shown |= {ratio_name("ratio", own): f"test_{ratio_name(metric, own)}" for own in results.attributes}
    tables = []
    for reached, order, chosen in (
        (True, "tpr", results.best(metric, at_least, attribute=attribute)),
        (False, "ratio", results.closest(metric, at_least, attribute=attribute)),
    ):
        table = _renamed(told.loc[chosen.index], shown).assign(reached=reached)
        tables.append(table.sort_values(order, ascending=False, kind="stable"))
    return pd.concat(tables, ignore_index=True)


def _renamed(rows: pd.DataFrame, shown: dict[str, str]) -> pd.DataFrame:
    """Keep what a table shows, under short names; intervals only where there are any."""
    import pandas as pd

    metrics = {
        f"{name}{end}": rows[f"{column}{end}"]
        for name, column in shown.items()
        for end in ENDS
        if f"{column}{end}" in rows.columns
    }
    return pd.DataFrame({**rows[["intervention", "settings"]], **metrics, "model": rows["model"]})
