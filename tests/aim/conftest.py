"""Applicants of two groups whose scores differ, and features that tell most of the group."""

from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest


class Applicants(NamedTuple):
    X: pd.DataFrame
    y: np.ndarray
    sex: np.ndarray


def draw_applicants(n_rows, seed, *, tells=3.0, gap=1.2):
    rng = np.random.default_rng(seed)
    male = rng.random(n_rows) < 0.5
    skill = rng.normal(size=n_rows)
    X = pd.DataFrame(
        {
            "skill": skill + 0.2 * rng.normal(size=n_rows),
            "hobby": np.where(rng.random(n_rows) < 0.15, "chess", "football"),
            "height": rng.normal(size=n_rows) + tells * male,
        }
    )
    y = (skill + gap * male + 0.6 * rng.normal(size=n_rows) > 1.5).astype(int)
    return Applicants(X, y, np.where(male, "m", "f"))


@pytest.fixture(scope="session")
def applicants():
    return draw_applicants(6000, seed=0)


@pytest.fixture(scope="session")
def others():
    return draw_applicants(6000, seed=1)
