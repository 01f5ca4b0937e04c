"""Values by pyDVL: exact KNN-Shapley for the target, Data Banzhaf of a fairness score for the attribute.

    python -m venv pydvl && pydvl/bin/pip install pydvl pandas
    pydvl/bin/python pydvl_values.py rows.csv validation.csv values.csv --target default --attribute old

Written for pyDVL 0.10. Any of its methods will do for either column: what decides is the scorer.
"""

from __future__ import annotations

from _tables import fpr_gap, read, write
from pydvl.valuation import (
    BanzhafValuation,
    Dataset,
    KNNShapleyValuation,
    MaxSamples,
    ModelUtility,
    MSRSampler,
    SupervisedScorer,
)
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

N_SUBSETS = 200  # and as many fits


def main():
    rows, validation, arguments = read(__doc__)
    train, test = Dataset(rows.X, rows.y), Dataset(validation.X, validation.y)

    knn = KNNShapleyValuation(KNeighborsClassifier(n_neighbors=5), test, progress=False)
    v_y = knn.fit(train).result

    def fairness(model, X, y):  # of the validation rows, whose order does not change
        return -fpr_gap(y, model.predict(X), validation.group)

    # a model that cannot be fitted treats all alike
    scorer = SupervisedScorer(fairness, test, default=0.0, range=(-1.0, 0.0))
    utility = ModelUtility(LogisticRegression(), scorer)
    sampler = MSRSampler(seed=0)  # every subset tells of every row
    banzhaf = BanzhafValuation(utility, sampler, MaxSamples(sampler, N_SUBSETS), progress=False)
    v_z = banzhaf.fit(train).result

    for result in (v_y, v_z):
        result.sort(key="index")  # pyDVL may give values in another order than the rows'
    write(arguments, rows, v_y.values, v_z.values)


if __name__ == "__main__":
    main()
