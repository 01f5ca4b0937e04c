"""Engines that fit models and score rows: LightGBM on shared bins, and any scikit-learn estimator."""

from fado.engine._base import Engine as Engine
from fado.engine._base import Model as Model
from fado.engine._base import Schema as Schema
from fado.engine._base import Scorer as Scorer
from fado.engine._base import Task as Task
from fado.engine._base import Watch as Watch
from fado.engine._layout import MissingValuesError as MissingValuesError
from fado.engine._layout import explaining_missing as explaining_missing
from fado.engine._lightgbm import LightGBMEngine as LightGBMEngine
from fado.engine._lightgbm import LightGBMModel as LightGBMModel
from fado.engine._lightgbm import default_estimators as default_estimators
from fado.engine._scorers import CombinedScorer as CombinedScorer
from fado.engine._scorers import StudentScorer as StudentScorer
from fado.engine._scorers import combine_probabilities as combine_probabilities
from fado.engine._scorers import groups_given_labels as groups_given_labels
from fado.engine._scorers import scorer_from as scorer_from
from fado.engine._sklearn import SklearnEngine as SklearnEngine
from fado.engine._sklearn import engine_class as engine_class
from fado.engine._sklearn import weights_refused as weights_refused
from fado.engine._trees import Forest as Forest
from fado.engine._trees import LeafReader as LeafReader
