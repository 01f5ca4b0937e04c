"""The interventions of the paper and ours, in the order in which frames and pages show them."""

from __future__ import annotations

from fado.interventions._fairlearn import CONSTRAINTS, FairlearnGrid
from fado.interventions._prevalence import RandomPrevalenceSampler, UtilityAwarePrevalenceSampler
from fado.interventions._registry import Setting, register_intervention
from fado.interventions._reweighing import Reweigher, UtilityAwareReweigher
from fado.interventions._untouched import NoIntervention

__all__: list[str] = []

STRENGTH = Setting(
    "strength", "share", 1.0, "strengths", help="How far groups' rates move to the highest rate, 0 to 1."
)
SCALING = Setting(
    "scaling",
    "choice",
    "minmax",
    "scalings",
    ("minmax", "none"),
    help="minmax scales utilities to [0, 1]; none takes them as they are.",
)
NEGATIVE = Setting(
    "negative",
    "choice",
    "raise",
    choices=("raise", "clip"),
    help="Without scaling, negative utilities are an error (raise) or a weight of 0 (clip).",
)
FLOOR = Setting(
    "floor",
    "share",
    0.0,
    "floors",
    help="Weight of the least useful row over that of the most useful, 0 to 1.",
)
CORRECTION = Setting(
    "prevalence_correction",
    "number",
    1.0,
    "prevalence_corrections",
    help="Power of the correction of rates: 0 for none, 1 for equal rates.",
)

CONSTRAINT = Setting(
    "constraint",
    "choice",
    CONSTRAINTS[0],
    "constraints",
    CONSTRAINTS,
    help="What fairlearn makes equal between groups.",
)
POINT = Setting("point", "share", 0.5, "points", help="The place on fairlearn's grid of multipliers, 0 to 1.")

register_intervention("none", by_default=True, colour="#111111")(NoIntervention)
register_intervention("RPS", by_default=True, fixed={"strength": 1.0}, colour="#1f6fd0")(
    RandomPrevalenceSampler
)
register_intervention("RW", by_default=True, colour="#8e44ad")(Reweigher)
register_intervention("UAPS", settings=[STRENGTH], shape="triangle-up")(UtilityAwarePrevalenceSampler)
register_intervention("UAR", settings=[SCALING, NEGATIVE], shape="square")(UtilityAwareReweigher)
register_intervention(
    "corrected UAR", settings=[FLOOR, CORRECTION], fixed={"scaling": "minmax"}, shape="diamond"
)(UtilityAwareReweigher)
register_intervention("fairlearn grid", settings=[CONSTRAINT, POINT], colour="#d35400")(FairlearnGrid)
