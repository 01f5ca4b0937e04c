"""A utility and an intervention of another package: one class each, and they are everywhere."""

import copy
import sys

import numpy as np
import pytest

from fado.experiment import Experiment, Results
from fado.experiment._plugins import registrations
from fado.interventions import (
    BaseIntervention,
    Setting,
    TrainingSet,
    intervention_entries,
    register_intervention,
)
from fado.utility import BaseUtility, register_utility
from fado.valuation import BaseValuator, Valuation, register_valuator

HERE = r" \(module 'tests\.experiment\.test_plugging_in'\)"


def plug_in():
    @register_utility("least")
    class LeastUtility(BaseUtility):
        def _combine(self, performance, fairness):
            return np.min([values for weight, values in (performance, *fairness) if weight], axis=0)

    @register_intervention("every second", settings=[Setting("offset", "number", 0.0, "offsets")])
    class EverySecond(BaseIntervention):
        def __init__(self, offset=0.0):
            self.offset = offset

        def _choose(self, labels, groups, utilities, sample_weight, generator):
            return TrainingSet(np.arange(int(self.offset), len(labels.codes), 2))

    return LeastUtility, EverySecond


@pytest.fixture
def plugged(table):
    """The tiny experiment, with what was plugged in."""
    uar = {"alphas": [0.5, 1.0], "utilities": ["linear", "least"]}
    table["interventions"] = {"rps": False, "every_second": {"offsets": [0, 1, 300]}, "uar": uar}
    return table


def test_they_run_through_configuration_frame_and_report_and_a_store_outlives_them(
    registries, plugged, tmp_path
):
    plug_in()
    experiment = Experiment(copy.deepcopy(plugged))
    assert experiment.config.flat()["interventions.every_second.offsets"] == [0.0, 1.0, 300.0]
    before = experiment.run(tmp_path / "store", n_jobs=2)
    frame = before.frame
    assert (frame["status"] == "done").all()
    assert before.interventions == ["none", "RW", "UAR", "every second"]
    columns = list(frame.columns)
    assert columns[columns.index("model") - 1] == "offset"  # behind the settings of all others
    ours = frame[frame["intervention"] == "every second"]
    assert ours[["offset", "model", "training_rows"]].to_numpy().tolist() == [
        [0, 0, 500], [0, 1, 500], [1, 0, 500], [1, 1, 500], [300, 0, 350], [300, 1, 350]
    ]  # fmt: skip
    assert frame.loc[frame["intervention"] != "every second", "offset"].isna().all()
    least = frame[frame["utility"] == "least"].set_index(["alpha", "model"])["test_threshold"]
    linear = frame[frame["utility"] == "linear"].set_index(["alpha", "model"])["test_threshold"]
    assert (least[1.0] == linear[1.0]).all()  # at alpha 1 only one value counts in either
    assert (least[0.5] != linear[0.5]).any()
    before.report(tmp_path / "before.html")
    text = (tmp_path / "before.html").read_text()
    for told in ("every second", "offset 300", "interventions.every_second.offsets", "least"):
        assert told in text
    assert before.lacking == []
    registries()
    told = f"made with the utility 'least'{HERE}; the intervention 'every_second'{HERE}, not registered here"
    with pytest.warns(UserWarning, match=told):
        results = Results.load(tmp_path / "store")
    assert results.interventions == ["none", "RW", "UAR", "every second"]
    assert results.frame.equals(frame)
    results.report(tmp_path / "after.html")
    assert (tmp_path / "after.html").read_text() == text
    del plugged["interventions"]["uar"]
    with pytest.raises(ValueError, match=r"`interventions.every_second` is not a key of the configuration"):
        Experiment(plugged)


def test_a_store_shows_the_values_of_a_valuator_that_is_not_here(registries, table, tmp_path):
    @register_valuator("rarity")
    class Rarity(BaseValuator):
        def __init__(self, random_state=None):
            self.random_state = random_state

        def _value(self, problem, validation, seed):
            cells = problem.groups.codes * len(problem.labels.classes) + problem.labels.codes
            rarity = 1 - np.bincount(cells)[cells] / problem.n_rows
            return Valuation.from_values({own.name: rarity for own in problem.variables})

    table["valuation"]["algorithms"] = ["rarity"]
    table["interventions"] = {"rps": False, "rw": False, "uar": {"alphas": [0.5]}}
    before = Experiment(copy.deepcopy(table)).run(tmp_path / "store", n_jobs=1)
    assert (before.frame["status"] == "done").all()
    registries()
    with pytest.warns(UserWarning, match=f"was made with the valuator 'rarity'{HERE}, not registered here"):
        results = Results.load(tmp_path / "store")
    assert results.frame.equals(before.frame)
    results.report(tmp_path / "report.html")
    assert "rarity" in (tmp_path / "report.html").read_text()
    with pytest.raises(
        ValueError, match=f"used the valuator 'rarity'{HERE}, which is not registered here: import"
    ):
        results.fit_best("fpr_ratio", 0.01)
    with pytest.raises(ValueError, match=r"`valuation\.algorithms\[0\]` must be 'oob' or .*, got 'rarity'"):
        Experiment(table).run(tmp_path / "store")


def test_an_intervention_that_is_not_asked_for_leaves_a_store_as_it_was(table, tmp_path):
    table["interventions"] = {"rps": False, "rw": False}
    Experiment(copy.deepcopy(table)).run(tmp_path / "store", n_jobs=1)
    plug_in()
    register_intervention("switched")(type("Switched", (plug_in()[1],), {}))
    again = Experiment(table).run(tmp_path / "store", n_jobs=1).frame
    assert again["offset"].isna().all()


def test_what_goes_wrong_in_an_intervention_is_told(table, tmp_path):
    @register_intervention("made")
    class Made(BaseIntervention):
        def _choose(self, labels, groups, utilities, sample_weight, generator):
            return TrainingSet(np.arange(len(labels.codes)), parents=np.array([0]))

    @register_utility("unknown")
    class Unknown(BaseUtility):
        def _combine(self, performance, fairness):
            return np.full(len(performance[1]), np.nan)

    table["interventions"] = {
        "made": True, "rps": False, "rw": False, "uar": {"alphas": [0.5], "utilities": ["unknown"]},
    }  # fmt: skip
    frame = Experiment(table).run(tmp_path / "store", n_jobs=1).frame
    told = frame.drop_duplicates("intervention").set_index("intervention")["error"]
    assert told["made"] == "The intervention makes rows, which an experiment cannot train on."
    assert told["UAR"] == "1000 of 1000 rows have no utility."


def test_another_process_learns_all_of_an_entry(registries):
    @register_intervention("by group", settings=[Setting("offset", "number", 0.0)], needs_group=True)
    class ByGroup(BaseIntervention):
        def _choose(self, labels, groups, utilities, sample_weight, generator):
            return TrainingSet(np.arange(len(labels.codes)))

    before = intervention_entries()
    assert before[-1].needs_group
    assert not any(entry.needs_group for entry in before[:5])
    steps = registrations()
    registries()
    for step in steps:
        step()
    assert intervention_entries()[-1].name == "by group"
    assert intervention_entries()[-1].needs_group
    sys.modules["fado.interventions._registry"]._ENTRIES.pop("by_group")
