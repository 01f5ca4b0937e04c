"""`fado sample`, as a user runs it."""

import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from tests.cli.program import check_sentence, run

from fado import (
    CobbDouglasUtility,
    DifferenceUtility,
    LinearUtility,
    RandomPrevalenceSampler,
    UtilityAwarePrevalenceSampler,
    Valuation,
)
from fado.cli._outputs import write_table
from fado.interventions import BaseIntervention, TrainingSet, register_intervention
from fado.tabular import read_table

RNG = np.random.default_rng(0)
N = 200
FRAME = pd.DataFrame(
    {
        "age": RNG.integers(18, 90, N),
        "sex": pd.Categorical(RNG.choice(["f", "m"], N)),
        "when": pd.Timestamp("2020-01-01").as_unit("ms"),  # Parquet knows no seconds
        "note": RNG.choice(["a", "b,c", 'd"e'], N),
    }
)
FRAME["default"] = (RNG.random(N) < np.where(FRAME["sex"] == "f", 0.2, 0.5)).astype(int)
FRAME["id"] = np.arange(N)
VALUATION = Valuation.from_probabilities(
    RNG.random(N), {"sex": RNG.random(N), "age>=50": np.round(RNG.random(N), 1)}
)


@pytest.fixture
def files(tmp_path):
    FRAME.to_parquet(tmp_path / "data.parquet")
    VALUATION.save(tmp_path / "values.parquet")
    return tmp_path


def sample(files, *more, out="train.parquet", protected=("sex",), data="data.parquet", **options):
    options = {"target": "default", "alpha": 0.5, "values": files / "values.parquet"} | options
    return run("sample", files / data, *more, protected=protected, out=files / out, **options)


def expected(utility, z, sample_weight=None, **settings):
    sampler = UtilityAwarePrevalenceSampler(utility, random_state=0, **settings)
    given = {"sensitive_features": z, "valuation": VALUATION, "sample_weight": sample_weight}
    return sampler.fit(FRAME, FRAME["default"], **given).sample_indices_.tolist()


SEX = {"sex": FRAME["sex"]}
OLD = {"age>=50": FRAME["age"] >= 50}


@pytest.mark.parametrize(
    ("more", "z", "utility", "settings"),
    [
        ("", SEX, LinearUtility(0.5, {"sex": 0.5}), {}),
        ("--strength 0.5", SEX, LinearUtility(0.5, {"sex": 0.5}), {"strength": 0.5}),
        ("--utility difference", SEX, DifferenceUtility(0.5, {"sex": 0.5}), {}),
        ("--utility cobb-douglas", OLD, CobbDouglasUtility(0.5, {"age>=50": 0.5}), {}),
        ("--positive 0", SEX, LinearUtility(0.5, {"sex": 0.5}), {"pos_label": 0}),
        ("", SEX | OLD, LinearUtility(0.5), {}),
    ],
)
def test_rows_equal_the_librarys(files, more, z, utility, settings):
    result = sample(files, *more.split(), protected=list(z))
    rows = expected(utility, z, **settings)
    train = pd.read_parquet(files / "train.parquet")
    pd.testing.assert_frame_equal(train, FRAME.iloc[rows].reset_index(drop=True))
    assert f"{len(rows)} of 200 rows written" in result.stdout


@pytest.mark.parametrize("weighted", [False, True])
def test_the_summary_shows_rows_rates_and_sizes_before_and_after(files, weighted):
    frame = FRAME.assign(survey=RNG.integers(1, 5, N) if weighted else 1)
    frame.to_parquet(files / "data.parquet")
    result = sample(files, *(["--weight", "survey"] if weighted else []))
    train, linear = pd.read_parquet(files / "train.parquet"), LinearUtility(0.5, {"sex": 0.5})
    assert train["id"].tolist() == expected(linear, SEX, frame["survey"] if weighted else None)
    assert (train["id"].tolist() == expected(linear, SEX)) is not weighted
    for sex in ("f", "m"):
        line = next(line.split() for line in result.stdout.splitlines() if line.strip().startswith(sex))
        parts = [part[part["sex"] == sex] for part in (frame, train)]
        rates = [f"{np.average(part['default'], weights=part['survey']):.3f}" for part in parts]
        sizes = [str(round(part["survey"].sum() ** 2 / (part["survey"] ** 2).sum())) for part in parts]
        assert line == [sex, str(len(parts[0])), str(len(parts[1])), *rates, *sizes]
    if not weighted:
        header, last = result.stdout.splitlines()[2:4], result.stdout.splitlines()[-3:-1]
        first = "rows positive effective effective"
        assert " ".join(header).split() == f"{first} group rows after positive after size size after".split()
        settings = "intervention uaps, utility linear, alpha 0.5, min-group-size 30, strength 1.0, positive 1"
        assert " ".join(" ".join(last).split()) == f"Settings: {settings}, seed 0."
        assert max(map(len, result.stdout.splitlines()[:-1])) <= 80


def test_csv_in_and_out(files):
    FRAME.drop(columns="when").to_csv(files / "data.csv", index=False)
    sample(files, data="data.csv", out="train.csv")
    rows = expected(LinearUtility(0.5, {"sex": 0.5}), SEX)
    text = pd.read_csv(files / "train.csv")
    plain = FRAME.drop(columns="when").iloc[rows].reset_index(drop=True).astype({"sex": str})
    pd.testing.assert_frame_equal(text, plain)


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\0"])
def test_text_that_a_spreadsheet_may_run_goes_to_parquet_only(files, start):
    frame = FRAME.copy()
    frame.loc[FRAME["default"] == 1, "note"] = start + "cmd|' /C calc'!A0"
    frame.to_parquet(files / "data.parquet")
    told = "Column 'note' .*formula .*write a file that ends in .parquet"
    check_sentence(sample(files, out="train.csv", code=2), told)
    assert not (files / "train.csv").exists()
    sample(files, out="train.parquet")
    assert pd.read_parquet(files / "train.parquet")["note"].str.startswith(start).any()


def test_column_names_and_categories_that_a_spreadsheet_may_run(tmp_path):
    for table in (pa.table({"=a": [1]}), pa.table({"c": pa.array(["=a"]).dictionary_encode()})):
        with pytest.raises(ValueError, match=r"may run as a formula \('=a'\)"):
            write_table(table, tmp_path / "t.csv")
    numbers = pa.table({"n": [-1, -2], "t": ["a-b", None]})
    write_table(numbers, tmp_path / "t.csv")
    assert read_table(tmp_path / "t.csv").to_pylist() == numbers.to_pylist()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("--alpha 1.5", r"`--alpha` must be in \[0, 1\], got 1.5"),
        ("--strength 2", r"`--strength` must be in \[0, 1\], got 2.0"),
        ("--protected age>=60", "no values for the protected attribute 'age>=60'; it has 'sex', 'age>=50'"),
        ("--protected note", "no values for the protected attribute 'note'; it has 'sex', 'age>=50'"),
        ("--target note", r"`--target` must hold two labels .* got 3 \('a', 'b,c', 'd\"e'\)"),
        ("--target note --positive a", r"`--target` must hold two labels"),
    ],
)
def test_bad_input_ends_in_one_sentence(files, more, message):
    before = sorted(path.name for path in files.iterdir())
    check_sentence(sample(files, *more.split(), code=2), message)
    assert sorted(path.name for path in files.iterdir()) == before


def test_values_of_other_rows_are_refused(files):
    VALUATION[:150].save(files / "values.parquet")
    told = "`--values` has 150 rows and X has 200: pass the valuation of the same rows"
    check_sentence(sample(files, code=2), told)
    (files / "values.parquet").write_bytes(b"PAR1....")
    check_sentence(sample(files, code=2), "is not a valuation that FADO saved")
    FRAME.to_parquet(files / "values.parquet")
    check_sentence(sample(files, code=2), "is not a valuation that FADO saved")


@pytest.fixture
def with_a_tiny_group(tmp_path):
    """Three groups, the third of them 20 of 3000 rows, which are all positive."""
    n, tiny = 3000, 20
    group = np.repeat(["a", "b", "c"], [2000, n - 2000 - tiny, tiny])
    y = np.r_[np.arange(2000) % 4 == 0, np.arange(n - 2000 - tiny) % 2 == 0, np.ones(tiny)].astype(int)
    pd.DataFrame({"x": RNG.random(n), "sex": group, "default": y}).to_parquet(tmp_path / "data.parquet")
    Valuation.from_probabilities(RNG.random(n), {"sex": RNG.random(n)}).save(tmp_path / "values.parquet")
    return tmp_path


@pytest.mark.parametrize(
    ("command", "method"),
    [("sample", "uaps"), ("sample", "rps"), ("reweigh", "rw"), ("reweigh", "corrected_uar")],
)
@pytest.mark.parametrize(("size", "marked"), [(None, True), (21, True), (0, False)])
def test_small_groups_are_left_alone_marked_and_warned_of(with_a_tiny_group, command, method, size, marked):
    values = {} if method in ("rps", "rw") else {"values": with_a_tiny_group / "values.parquet", "alpha": 0.5}
    more = [] if size is None else ["--min-group-size", size]
    result = bare(with_a_tiny_group, command, *more, intervention=method, **values)
    lines = {line.strip().split("  ")[0]: line.split() for line in result.stdout.splitlines()}
    told = 30 if size is None else size
    assert f"min-group-size {told}" in " ".join(result.stdout.split())
    note = f"* too small to compare: fewer than {told} rows and less than 1 % of the table"
    assert ("c *" in lines) == (note in result.stdout) == marked
    warned = [line for line in result.stderr.splitlines() if line.startswith("warning: Group 'c' (20 rows)")]
    assert len(warned) == marked
    if marked:
        assert "`--min-group-size 0`" in warned[0]
        assert f"{float(lines['b'][4]):.2f}" == f"{float(lines['a'][4]):.2f}"  # rates after, without c's
        assert lines["c *"][2:4] == ["20", "20"]


def test_many_small_groups_share_a_line(tmp_path):
    tiny = [f"t{number}" for number in range(8)]
    sizes = [2000, 1000, 9, 8, 7, 6, 5, 4, 3, 2]
    n = sum(sizes)
    frame = pd.DataFrame({"x": RNG.random(n), "sex": np.repeat(["a", "b", *tiny], sizes)})
    frame.assign(default=np.arange(n) % 4 // 3).to_parquet(tmp_path / "data.parquet")
    result = bare(tmp_path, "sample", "--intervention", "rps")
    lines = [re.split(r"\s{2,}", line.strip()) for line in result.stdout.splitlines() if " * " in line]
    assert [line[0] for line in lines] == [*(f"{name} *" for name in tiny[:5]), "3 more small groups *"]
    assert lines[-1][1:3] == ["9", "9"]  # 4 + 3 + 2 rows, all kept


def test_a_method_without_small_groups_takes_no_size(files):
    @register_intervention("halved")
    class Halved(BaseIntervention):
        def _choose(self, labels, groups, utilities, sample_weight, generator):
            return TrainingSet(np.arange(len(labels.codes) // 2))

    result = bare(files, "sample", "--intervention", "halved", "--min-group-size", 5, code=2)
    assert result.stderr == (
        "error: `--min-group-size` is not for `--intervention halved`, which treats all groups alike: leave "
        "it out.\n"
    )
    done = bare(files, "sample", "--intervention", "halved")
    assert "100 of 200 rows written" in done.stdout
    assert "min-group-size" not in done.stdout


@pytest.mark.parametrize("name", ["data.parquet", "values.parquet", "mine.parquet"])
def test_an_input_or_a_read_only_file_is_never_replaced(files, name):
    (files / "mine.parquet").write_text("mine")
    (files / "mine.parquet").chmod(0o444)
    before = (files / name).read_bytes()
    told = "is read-only: name another file." if name.startswith("mine") else "which is also an input: name"
    assert told in sample(files, out=name, code=2).stderr
    assert (files / name).read_bytes() == before


def test_values_of_another_target_or_order_are_refused(files):
    bare(files, "value", "--drop", "when", "--bags", 5, out="values.parquet")
    sample(files)
    assert "are for the target 'default', not for 'age'" in sample(files, target="age", code=2).stderr
    FRAME.iloc[::-1].to_parquet(files / "data.parquet")
    assert "has another order: value this table." in sample(files, code=2).stderr


def bare(files, command, *more, out="train.parquet", code=0, **options):
    """Run a command without values and alpha."""
    options = {"target": "default", "protected": "sex", "out": files / out} | options
    return run(command, files / "data.parquet", *more, **options, code=code)


def test_random_sampling_needs_no_values(files):
    bare(files, "sample", "--intervention", "rps", "--seed", 3)
    sampler = RandomPrevalenceSampler(random_state=3)
    sampler.fit(FRAME, FRAME["default"], sensitive_features=FRAME["sex"])
    assert pd.read_parquet(files / "train.parquet")["id"].tolist() == sampler.sample_indices_.tolist()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("sample", "Missing option '--values': `--intervention uaps` uses values; `fado value` writes them."),
        (
            "sample --values v.parquet",
            "Missing option '--alpha': `--intervention uaps` uses values; set the weight of performance, 0 "
            "to 1.",
        ),
        (
            "sample --intervention rps --alpha 0.5",
            "`--intervention rps` uses no values: leave out `--alpha`.",
        ),
        (
            "sample --intervention rps --values v.parquet --utility linear",
            "`--intervention rps` uses no values: leave out `--values`, `--utility`.",
        ),
        (
            "sample --intervention rps --strength 0.5",
            "`--strength` is not for `--intervention rps`, which has no settings: leave it out.",
        ),
        (
            "reweigh --intervention corrected_uar --values v.parquet --alpha 0.5 --scaling none",
            "`--scaling` is not for `--intervention corrected_uar`, which has `--negative`, `--floor`, "
            "`--prevalence-correction`: leave it out.",
        ),
        ("reweigh --intervention rw --weight nte", "The table has no column 'nte'; did you mean 'note'?"),
        ("reweigh --intervention rw --weight note", "`--weight` must hold numbers, got text."),
        (
            "reweigh --intervention rw --weight default",
            "`--weight` names 'default', the target: name another column.",
        ),
        ("sample --intervention rps --min-group-size -1", "`--min-group-size` must be at least 0, got -1."),
        (
            f"sample --intervention rps --min-group-size {10**13}",
            "`--min-group-size` must be at most 1,000,000,000,000, got 10000000000000.",
        ),
    ],
)
def test_options_that_do_not_fit_the_method_or_the_table(files, words, message):
    assert bare(files, *words.split(), code=2).stderr == f"error: {message}\n"
    assert not (files / "train.parquet").exists()


def test_methods_of_the_other_command_are_not_offered(files):
    for command, method in (("sample", "rw"), ("reweigh", "rps"), ("sample", "none"), ("reweigh", "none")):
        done = bare(files, command, intervention=method, code=2)
        assert "Invalid value for '--intervention'" in done.stderr


def test_a_continuous_attribute_is_shown_by_its_quarters(files):
    Valuation.from_probabilities(RNG.random(N), {"age": RNG.random(N)}).save(files / "values.parquet")
    result = bare(files, "reweigh", values=files / "values.parquet", protected="age", alpha=0.5)
    low, middle, high = (int(np.quantile(FRAME["age"], q, method="inverted_cdf")) for q in (0.25, 0.5, 0.75))
    for title in (f"up to {low}", f"{low} to {middle}", f"{middle} to {high}", f"over {high}"):
        assert f"  {title}  " in result.stdout
