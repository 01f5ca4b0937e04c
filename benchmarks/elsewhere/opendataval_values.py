"""Values by OpenDataVal: DVRL, rewarded by accuracy for the target and by a fairness score for the attribute.

    python -m venv opendataval && opendataval/bin/pip install opendataval "transformers<4.40"
    opendataval/bin/python opendataval_values.py rows.csv validation.csv values.csv --attribute old

Written for OpenDataVal 1.3, which pins a torch that newer releases of transformers do not take. DVRL's values
are probabilities of being picked, no effects: only their order and their distances count.
"""

from __future__ import annotations

import numpy as np
import torch
from _tables import fpr_gap, read, write
from opendataval.dataloader import DataFetcher
from opendataval.dataval import DVRL
from opendataval.metrics import accuracy
from opendataval.model import ClassifierSkLearnWrapper
from sklearn.linear_model import LogisticRegression

EPOCHS = 200


def main():
    rows, validation, arguments = read(__doc__)
    torch.manual_seed(0)
    fetcher = DataFetcher.from_data_splits(
        *_tensors(rows), *_tensors(validation), *_tensors(validation), one_hot=True, random_state=0
    )
    model = ClassifierSkLearnWrapper(LogisticRegression, num_classes=2)

    def fairness(y, scores):  # of the validation rows, whose order does not change
        return -fpr_gap(y.argmax(dim=1).numpy(), scores.argmax(dim=1).numpy(), validation.group)

    values = [
        DVRL(rl_epochs=EPOCHS, rl_batch_size=256, random_state=0).train(fetcher, model, metric).data_values
        for metric in (accuracy, fairness)
    ]
    write(arguments, rows, *values)


def _tensors(rows):
    return rows.X.astype(np.float32), np.eye(2, dtype=np.float32)[rows.y]


if __name__ == "__main__":
    main()
