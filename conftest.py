"""What every test and every running example shares."""

import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import version

import pytest

from fado._compat import OLD_NEWS

# The site's own code needs Sphinx, and what Sphinx writes repeats what is tested where it stands.
collect_ignore = [
    "docs/conf.py",
    "docs/_ext",
    "docs/_build",
    "docs/auto_examples",
    "docs/api",
    "docs/tutorial",
]

# What `make test` leaves to `make test-slow`: browsers, clusters, kills, processes, whole searches.
# A path, or the beginning of a test's name.
SLOW = (
    "docs/experiment.md",
    "docs/recipes/",
    "tests/aim/test_estimator.py::test_scikit_learn_checks",
    "tests/aim/test_estimator.py::test_unseen_rows_come_near_the_line",
    "tests/aim/test_estimator.py::test_with_metadata_routing",
    "tests/aim/test_curve.py::test_the_line_is_met_where_it_is_demanded",
    "tests/active/test_import.py",
    "tests/cli/test_app.py",
    "tests/cli/test_columns.py::test_an_experiment",
    "tests/cli/test_demo.py",
    "tests/cli/test_errors.py::test_what_cannot_be_written_is_named",
    "tests/cli/test_explore.py",
    "tests/cli/test_expressions.py::test_names_are_given",
    "tests/cli/test_frontier.py",
    "tests/cli/test_help.py::test_a_plug_in_that_is_installed",
    "tests/cli/test_plugging_in.py",
    "tests/cli/test_value.py::test_the_program_itself",
    "tests/end_to_end/",
    "tests/engine/test_fork.py",
    "tests/execution/test_executors.py",
    "tests/experiment/test_dossier.py",
    "tests/experiment/test_estimators.py",
    "tests/experiment/test_find.py",
    "tests/experiment/test_frame_page.py",
    "tests/experiment/test_frontier.py",
    "tests/experiment/test_isolation.py",
    "tests/experiment/test_own_metrics.py::test_in_a_process_of_its_own",
    "tests/experiment/test_given_data.py::test_a_run_in_a_process_of_its_own",
    "tests/experiment/test_score_interventions.py",
    "tests/exploration/test_answers.py",
    "tests/exploration/test_files.py",
    "tests/generation/test_estimator_checks.py",
    "tests/interventions/test_fairlearn.py",
    "tests/models/test_saved.py::test_a_killed_save",
    "tests/site/test_recipes.py",
    "tests/site/test_tutorial.py",
    "tests/test_checks.py::test_large_seeds_and_generators",
    "tests/test_notebook.py",
    "tests/typing/",
    "tests/valuation/entropy/test_kept_probabilities.py",
    "tests/valuation/influence/test_tree_influence.py::test_scikit_learn_checks",
    "tests/valuation/large/test_on_a_cluster.py",
    "tests/valuation/large/test_resuming.py",
    "tests/valuation/shapley/test_data.py::test_scikit_learn_checks",
    "tests/valuation/shapley/test_knn.py::test_scikit_learn_checks",
)

REGISTRIES = {
    "fado.valuation._base": "_CLASSES",
    "fado.utility": "_CLASSES",
    "fado.interventions._registry": "_ENTRIES",
}

# What the oldest versions say of each other (`tests/oldest.txt`); the newest never say it.
IGNORED = [
    f"ignore:{OLD_NEWS}:FutureWarning",
    "ignore:'force_all_finite' was renamed to 'ensure_all_finite':FutureWarning",  # LightGBM's own checks
]


def pytest_configure(config: pytest.Config) -> None:
    """Let the old versions talk to each other, where they are installed."""
    if version("lightgbm").startswith("4.5."):
        for line in IGNORED:
            config.addinivalue_line("filterwarnings", line)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the slow tests."""
    for item in items:
        if item.nodeid.startswith(SLOW):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def registries_stay_as_they_are() -> Iterator[None]:
    """Take out again what a test or an example registers."""
    import_module("fado.interventions")  # registers ours, utilities and valuators on its way
    before = {name: dict(getattr(sys.modules[name], own)) for name, own in REGISTRIES.items()}
    yield
    for name, entries in before.items():
        registry = getattr(sys.modules[name], REGISTRIES[name])
        registry.clear()
        registry.update(entries)
