"""From a table and its values to plain data: all that a page shows, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from fado._version import __version__
from fado.exploration._aim import aim_part
from fado.exploration._alpha import alpha_part
from fado.exploration._answers import answers
from fado.exploration._biases import biases
from fado.exploration._columns import columns_part
from fado.exploration._conditions import BinnedColumn, binned_target
from fado.exploration._consequences import Consequences
from fado.exploration._distributions import distributions, stability_part
from fado.exploration._effects import effects_part
from fado.exploration._groups import listed_groups, show_groups, tell_left_out
from fado.exploration._material import Attribute, Material
from fado.exploration._plane import plane
from fado.exploration._pool_part import pool_part
from fado.exploration._sampled_part import sampled_part
from fado.exploration._slices import SliceFinder
from fado.exploration._suspicious import suspicious_part
from fado.exploration._wording import quoted
from fado.tabular import group_rows

__all__ = ["summarise"]


def summarise(
    material: Material,
    *,
    show_rows: bool,
    retrain: int,
    estimator: Any = None,
    n_jobs: int | None = None,
    progress: bool = False,
    stability: Any = None,
) -> dict[str, Any]:
    """Summarise the material as plain data that JSON can hold.

    Parameters
    ----------
    material : Material
        What is explored.
    show_rows : bool
        Whether to tell what single rows hold.
    retrain, estimator, n_jobs, progress, stability
        As `explore` takes them.

    Returns
    -------
    dict
        ``about`` the data and the values; one entry of ``attributes`` per protected attribute; ``together``,
        what the slider shows when the utility weighs several attributes at once (None for one); and
        ``stability``, whether another run would rank rows alike.
        If there is one, the ``pool`` of rows without labels beside all that.
    """
    finder, pool = SliceFinder(material), material.pool
    columns = [*finder.columns, binned_target(material, len(finder.columns))]
    consequences = Consequences(
        material, columns, retrain=retrain, estimator=estimator, n_jobs=n_jobs, progress=progress
    )
    return _known(
        {
            "about": _about(material),
            "attributes": [
                _attribute(material, one, finder, columns, consequences, show_rows)
                for one in material.attributes
            ],
            "together": _together(material, finder),
            "stability": stability_part(material, stability),
        }
        | ({} if pool is None else {"pool": pool_part(material, pool)})
    )


def _known(value: Any) -> Any:
    """Put None, which JSON has, in the place of NaN, which it has not."""
    if isinstance(value, dict):
        return {key: _known(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_known(entry) for entry in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _attribute(
    material: Material,
    attribute: Attribute,
    finder: SliceFinder,
    columns: Sequence[BinnedColumn],
    consequences: Consequences,
    show_rows: bool,
) -> dict[str, Any]:
    groups = attribute.groups
    effects = effects_part(material, attribute, columns, consequences, show_rows=show_rows)
    parts = {
        "name": attribute.name,
        "kind": attribute.variable.kind,
        "groups": listed_groups(groups, attribute.whole),
        "shown": list(groups.names),
        "some_hidden": bool((groups.codes < 0).any()),
        "left_out": tell_left_out(groups, attribute.speak, material.min_group_size),
        "biases": biases(material, attribute),
        "values": distributions(material, attribute),
        "plane": plane(material, attribute),
        "alpha": alpha_part(material, finder, [attribute.name], attribute.fine, groups),
        "aim": aim_part(material, attribute),
        "gives_away": finder.gives_away(attribute),
        "columns": columns_part(material, attribute, finder.columns),
        "suspicious": suspicious_part(material, attribute, finder, show_rows=show_rows),
        "not_measured": consequences.reasons[attribute.name],
    } | ({} if effects is None else {"effects": effects})
    return parts | {"answers": answers(material, attribute, parts)}


def _together(material: Material, finder: SliceFinder) -> dict[str, Any] | None:
    if len(material.attributes) < 2:
        return None
    fine = group_rows([one.variable for one in material.attributes], quarters=True)
    shown = show_groups(fine.codes, fine.titles, material.min_group_size)
    return {
        **alpha_part(material, finder, [one.name for one in material.attributes], fine, shown),
        "listed": listed_groups(shown),
        "left_out": tell_left_out(shown, quoted, material.min_group_size),
    }


def _about(material: Material) -> dict[str, Any]:
    target, provenance = material.target, material.valuation.provenance
    positive = None if material.positive is None else str(target.classes[material.positive])
    return {
        "rows": len(material),
        "weights_given": material.weights is not None,
        "rows_without_value": material.table.n_rows - len(material),
        "rows_searched": len(material.sample),
        "sampled": sampled_part(material),
        "columns": material.table.n_columns,
        "target": {
            "name": material.target_name,
            "kind": target.kind,
            "classes": [str(label) for label in target.classes],
            "positive": positive,
        },
        "outcome": _outcome_name(material),
        "algorithm": provenance.algorithm,
        "bags": provenance.settings.get("n_bags"),
        "seed": material.seed,
        "version": __version__,
    }


def _outcome_name(material: Material) -> dict[str, str] | None:
    """Name what groups are compared by: a rate, or a mean."""
    if material.target.kind == "continuous":
        return {"name": f"mean {material.target_name}", "format": "number"}
    if material.positive is None:
        return None
    return {"name": f"rate of {quoted(material.speak_label(material.positive))}", "format": "percent"}
