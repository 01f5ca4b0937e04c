import json
import re

import numpy as np
import pandas as pd
import pytest

from fado import Valuation, explore


@pytest.fixture(scope="module")
def text(small):
    return explore(small.X, small.y, sensitive_features=small.z, valuation=small.valuation, retrain=0).html()


def embedded(text):
    return re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)[1]


def test_the_page_holds_the_summary_to_six_digits(small, text):
    summary = explore(
        small.X, small.y, sensitive_features=small.z, valuation=small.valuation, retrain=0
    ).to_dict()

    def rounded(value):
        if isinstance(value, dict):
            return {key: rounded(entry) for key, entry in value.items()}
        if isinstance(value, list):
            return [rounded(entry) for entry in value]
        return float(f"{value:.6g}") if isinstance(value, float) else value

    assert json.loads(embedded(text)) == rounded(summary)


def test_the_page_is_written_whole(tmp_path, small):
    seen = explore(small.X, small.y, sensitive_features=small.z, valuation=small.valuation, retrain=0)
    seen.write_html(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == seen.html()
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]
    with pytest.raises(FileNotFoundError, match="does not exist"):
        seen.write_html(tmp_path / "missing" / "page.html")


def test_a_notebook_shows_the_page_in_a_frame_of_its_own(small):
    seen = explore(small.X, small.y, sensitive_features=small.z, valuation=small.valuation, retrain=0)
    frame = seen._repr_html_()
    assert frame.startswith('<iframe sandbox="allow-scripts" srcdoc="&lt;!doctype html&gt;')
    assert frame.count("<") == 2


def test_many_rows_attributes_and_groups_stay_under_three_megabytes():
    rng = np.random.default_rng(0)
    n_rows = 20_000
    X = pd.DataFrame({f"column {j}": rng.integers(0, 40, n_rows) for j in range(6)})
    z = {f"z{k}": rng.integers(0, 15, n_rows) for k in range(3)}
    values = Valuation.from_probabilities(rng.random(n_rows), {name: rng.random(n_rows) for name in z})
    seen = explore(
        X, rng.integers(0, 2, n_rows), sensitive_features=z, valuation=values, max_rows=2_000, retrain=0
    )
    assert len(seen.html().encode()) < 3_000_000
