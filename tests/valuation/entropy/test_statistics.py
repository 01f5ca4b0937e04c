import numpy as np
import pytest

from fado.tabular import Variable
from fado.valuation.entropy._statistics import what_is_wrong

TWO = Variable("z", "classes", np.array([0, 1, 1]), ("a", "b"))
THREE = Variable("z", "classes", np.array([0, 1, 2]), ("a", "b", "c"))
NUMBER = Variable("z", "continuous", np.array([0.0, 1.0, 2.5]))


@pytest.mark.parametrize(
    ("variable", "predicted"),
    [
        (TWO, np.array([0.0, 0.5, 1.0])),
        (TWO, np.array([[0.0, 1.0], [0.5, 0.5], [0.25, 0.75]])),
        (THREE, np.array([[0.2, 0.3, 0.5]] * 3, dtype=np.float32)),
        (NUMBER, np.array([-1e300, 0.0, 7.0])),
    ],
)
def test_nothing_is_wrong_with_predictions(variable, predicted):
    assert what_is_wrong(variable, 3, predicted) == ""


@pytest.mark.parametrize(
    ("variable", "predicted", "wrong"),
    [
        (TWO, [0.5, np.nan, np.inf], "NaN or infinite probabilities for 2 of 3 rows"),
        (TWO, [0.5, -1e-9, 0.5], "probabilities outside [0, 1] for 1 of 3 rows"),
        (TWO, [1.5, 0.5, 0.5], "probabilities outside [0, 1] for 1 of 3 rows"),
        (TWO, [[0.5, 0.4], [0.5, 0.5], [0.9, 0.9]], "probabilities that do not sum to 1 for 2 of 3 rows"),
        (TWO, [0.5, 0.5], "predictions of shape (2,) for 3 rows and 2 classes"),
        (THREE, [[0.5, 0.5]] * 3, "predictions of shape (3, 2) for 3 rows and 3 classes"),
        (THREE, [0.5, 0.5, 0.5], "predictions of shape (3,) for 3 rows and 3 classes"),
        (NUMBER, [0.5, np.nan, 1.0], "NaN or infinite predictions for 1 of 3 rows"),
        (NUMBER, [[0.5], [0.5], [0.5]], "predictions of shape (3, 1) for 3 rows"),
    ],
)
def test_what_is_wrong_is_said(variable, predicted, wrong):
    assert what_is_wrong(variable, 3, np.array(predicted)) == wrong
