"""Scores of FairGBM models, for benchmarks/aim.py, which calls this in an environment of FairGBM's own.

    python -m venv fairgbm
    fairgbm/bin/pip install fairgbm "numpy<1.24" "scikit-learn<1.2" "scipy<1.11" "pandas<2"
    fairgbm/bin/python benchmarks/elsewhere/fairgbm_scores.py IN.npz OUT.npz

FairGBM 0.9.14 was tried with these older packages only. It knows constraints on false-positive and
false-negative rates, none on selection rates.
"""

import json
import sys
import time

import numpy as np
from fairgbm import FairGBMClassifier

MULTIPLIERS = np.geomspace(0.1, 30, 8)


def main(given, made):
    with np.load(given) as arrays:
        X, y, z, X_scored = (arrays[name] for name in ("X", "y", "z", "X_scored"))
        categorical = arrays["categorical"].tolist()
        models = json.loads(str(arrays["models"]))
    scores, seconds = [], 0.0
    for parameters, threshold in models:
        for rate in MULTIPLIERS:
            model = FairGBMClassifier(
                constraint_type="FPR",
                constraint_fpr_tolerance=0.0,
                score_threshold=threshold,
                multiplier_learning_rate=rate,
                n_jobs=1,
                **parameters,
            )
            start = time.process_time()
            model.fit(X, y, constraint_group=z, categorical_feature=categorical)
            seconds += time.process_time() - start
            scores.append(model.predict_proba(X_scored)[:, 1])
    np.savez(made, scores=np.asarray(scores), seconds=seconds)


if __name__ == "__main__":
    main(*sys.argv[1:])
