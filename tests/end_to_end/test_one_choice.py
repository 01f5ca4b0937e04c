"""One rule of choice: Python, the command, the card and the page give the same model with its figures."""

import pytest
from tests.aim.conftest import draw_applicants
from typer.testing import CliRunner

from fado import find_frontier, load_model
from fado.cli._app import build_app

APPLICANTS = draw_applicants(1500, seed=0)
SHOWN = ("tpr", "fpr", "fpr_ratio", "threshold")
CHOSEN = """(() => {
  const row = bestOfAll(models, state.chosen), told = {};
  for (const name of NAMES) told[name] = models.figure(`validation_${name}`, row);
  const { reached } = state.chosen.find((one) => one.row === row);
  return [models.look(row).name, models.model(row), told, reached];
})()"""


@pytest.fixture(scope="module")
def frontier():
    sex = {"sex": APPLICANTS.sex}
    return find_frontier(
        APPLICANTS.X, APPLICANTS.y, sensitive_features=sex, max_fits=6, max_fpr=0.1, n_jobs=1
    )


@pytest.mark.parametrize("line", [0.05, 0.4, 1])
def test_the_command_the_card_the_page_and_python_choose_one_model(frontier, browser, tmp_path, line):
    data, out = tmp_path / "data.parquet", tmp_path / "model"
    APPLICANTS.X.assign(sex=APPLICANTS.sex, y=APPLICANTS.y).to_parquet(data)
    words = f"frontier {data} --target y --protected sex --drop sex --at-least {line} --out {out} "
    done = CliRunner().invoke(build_app(), (words + "--max-fits 6 --max-fpr 0.1 --jobs 1").split())
    assert done.exit_code == 0, done.output
    model, written = frontier.closest(line), load_model(out)
    assert repr(written.facts_) == repr(model.facts_)
    assert written.card() == model.card()

    frame, winners = frontier.frame, frontier.results.winners("fpr_ratio", line)
    whole = frame[~frame["cost"].between(0, 1, inclusive="neither")]
    row = whole.index[whole["validation_threshold"] == model.threshold_][0]
    intervention = model.facts_.intervention or "none"
    assert frame["intervention"][row] == intervention
    for part, told in model.facts_.measured.items():
        for name, value in told.items():  # with the ends of intervals
            assert value == pytest.approx(frame[f"{part}_{name}"][row], rel=0, abs=0, nan_ok=True), name
    (winner,) = winners[winners["intervention"] == intervention].to_dict("records")
    assert (winner["model"], winner["reached"]) == (frame["model"][row], model.reached_)
    assert winner["tpr"] == frame["test_tpr"][row]

    browser.open(f"{(out / 'landscape.html').as_uri()}#ratio=fpr_ratio&line={line}")
    kind, told, figures, reached = browser.evaluate(CHOSEN.replace("NAMES", str(list(SHOWN))))
    assert (kind, reached) == (intervention, model.reached_)
    assert told.startswith(f"{frame['model'][row]}: ")
    for name in SHOWN:
        assert figures[name] == pytest.approx(model.metrics_[name], abs=1.1e-6)
    assert browser.troubles() == []
