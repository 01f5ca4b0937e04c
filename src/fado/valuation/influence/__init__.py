"""What rows do to a model, through the leaves of its trees."""

from fado.valuation.influence._forests import readable_estimator as readable_estimator
from fado.valuation.influence._tree_influence import TreeInfluence as TreeInfluence
