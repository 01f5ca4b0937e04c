"""Values by datascope: Shapley values of 1-NN, for accuracy and for equalized odds between two groups.

    python -m venv datascope && datascope/bin/pip install datascope
    datascope/bin/python datascope_values.py rows.csv validation.csv values.csv --target default --attribute
    old

Written for datascope 0.0.32.
"""

from __future__ import annotations

import numpy as np
from _tables import read, write
from datascope.importance import (
    ShapleyImportance,
    SklearnModelAccuracy,
    SklearnModelEqualizedOddsDifference,
)
from sklearn.neighbors import KNeighborsClassifier


def main():
    rows, validation, arguments = read(__doc__)
    model = KNeighborsClassifier(n_neighbors=1)

    def importance(utility):
        found = ShapleyImportance(method="neighbor", utility=utility).fit(rows.X, rows.y)
        return np.asarray(found.score(validation.X, validation.y))

    v_y = importance(SklearnModelAccuracy(model))
    # It is a difference, so that more is worse: the sign is turned. Its rates are means over a group's rows
    # already, and datascope takes the mean over all validation rows once more: that is undone.
    odds = SklearnModelEqualizedOddsDifference(model, sensitive_features=0, groupings=validation.group)
    v_z = -len(validation.y) * importance(odds)
    write(arguments, rows, v_y, v_z)


if __name__ == "__main__":
    main()
