"""`fado value --from`: values that were made elsewhere."""

import numpy as np
import pandas as pd
import pytest
from tests.cli.program import refusal, run

from fado import Valuation

N = 40
FRAME = pd.DataFrame(
    {
        "id": np.arange(100, 100 + N),
        "age": np.tile([20, 40, 60, 80], N // 4),
        "sex": np.tile(["f", "m"], N // 2),
        "default": np.tile([0, 0, 0, 1, 1], N // 5),
    }
)


@pytest.fixture
def values(tmp_path):
    """Give values that tell their rows: the id for y, minus the id for the attribute."""
    FRAME.to_parquet(tmp_path / "data.parquet")
    table = pd.DataFrame({"id": FRAME["id"], "y": FRAME["id"] / 10, "sex": -FRAME["id"] / 10})
    table.to_csv(tmp_path / "made.csv", index=False)
    return table


def value(folder, *more, source="made.csv", out="v.parquet", protected=("sex",), code=0):
    options = {"target": "default", "protected": protected, "from": folder / source, "out": folder / out}
    return run("value", folder / "data.parquet", *more, **options, code=code)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("source", ["made.csv", "made.parquet"])
@pytest.mark.parametrize("out", ["v.csv", "v.parquet"])
def test_values_come_in_by_position(values, tmp_path, source, out, missing):
    if missing:
        values.loc[[2, 5, 6], "sex"] = np.nan
        values.loc[5, "y"] = np.nan
    values.to_csv(tmp_path / "made.csv", index=False)
    values.to_parquet(tmp_path / "made.parquet")
    result = value(tmp_path, source=source, out=out)
    assert result.stderr == ""
    assert ("Rows without a value: 1 for the target, 3 for sex\n" in result.stdout) is missing
    loaded = Valuation.load(tmp_path / out)
    pd.testing.assert_frame_equal(loaded.values, values[["y", "sex"]])
    assert loaded.provenance.algorithm == "given"
    assert loaded.scales["sex"].neutral == 0
    if out == "v.parquet":
        assert loaded.provenance.made_for.target == "default"


def test_the_summary(values, tmp_path):
    lines = value(tmp_path).stdout.splitlines()
    at = lines.index("Protected attribute sex: values for the target, quartiles per row")
    # ids of women are even: 100, 102, ..., with labels 0, 0, 1, 0, 1 in turn (the fives of 0 0 0 1 1)
    assert lines[at + 4].split()[:4] == ["f", "0", "12", "0.300"]
    assert "Values from a file: a higher value means that a row is worth more." in lines
    assert f"Values of {N} rows written to {tmp_path / 'v.parquet'}" in lines
    assert not any("no value" in line or "without a value" in line for line in lines)


def test_short_names_for_one_attribute(values, tmp_path):
    made = tmp_path / "made.csv"
    values.rename(columns={"y": "v_y", "sex": "v_z"}).to_csv(made, index=False)
    value(tmp_path, protected=("age >= 50",))
    loaded = Valuation.load(tmp_path / "v.parquet")
    assert loaded.variables == ["y", "age>=50"]
    np.testing.assert_array_equal(loaded["age>=50"], values["sex"])
    told = refusal(value(tmp_path, protected=("sex", "age>=50"), code=2))
    lacking = "has no column of values for the protected attribute 'sex': it must be named 'sex'."
    assert told == f"'{made}' {lacking}"


def test_a_column_that_differs_is_reported(values, tmp_path):
    values.astype({"id": float}).to_parquet(tmp_path / "made.parquet")
    assert value(tmp_path, source="made.parquet").stderr == ""
    values[::-1].to_csv(tmp_path / "made.csv", index=False)
    for written in (FRAME, FRAME.astype({"id": str}), FRAME.astype({"id": "category"})):
        written.to_parquet(tmp_path / "data.parquet")
        assert value(tmp_path).stderr == (
            f"warning: Rows are matched by position, but column 'id' of '{tmp_path / 'made.csv'}' differs "
            "from the table's: if it is a row id, sort the file like the table.\n"
        )


ENTRY = (
    "must contain finite numbers, got {} (the first is 0): correct it, or leave the cell empty if the row "
    "has no value."
)
HIGH = "'high' in row 3"
WRONG = {
    "rows": (
        lambda table: table[:30],
        "MADE has 30 rows and the table has 40: give every row a line, in the table's order, with an empty "
        "cell for a row without a value.",
    ),
    "target": (
        lambda table: table[["id", "sex"]],
        "MADE has no column of values for the target: it must be named 'y' or 'v_y'.",
    ),
    "attribute": (
        lambda table: table.rename(columns={"sex": "Sex"}),
        "MADE has no column of values for the protected attribute 'sex': it must be named 'sex' or 'v_z'; "
        "did you mean 'Sex'?",
    ),
    "twice": (
        lambda table: table.assign(v_y=0.5),
        "MADE has two columns of values for the target, 'y' and 'v_y': remove one.",
    ),
    "word": (
        lambda table: table.assign(y=table["y"].astype(object).where(table.index != 3, "high")),
        f"Column 'y' of MADE {ENTRY.format(HIGH)}",
    ),
    "booleans": (
        lambda table: table.assign(sex=table["sex"] < 0),
        f"Column 'sex' of MADE {ENTRY.format('True in row 0')}",
    ),
    "infinite": (
        lambda table: table.assign(y=table["y"].replace(10.5, np.inf)),
        f"Column 'y' of MADE {ENTRY.format('inf in row 5')}",
    ),
    "empty": (lambda table: table.assign(y=np.nan), "Column 'y' of MADE is empty: fill it."),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_with_a_file_is_one_sentence(values, tmp_path, case):
    change, sentence = WRONG[case]
    made = tmp_path / "made.csv"
    change(values).to_csv(made, index=False)
    assert refusal(value(tmp_path, code=2)) == sentence.replace("MADE", f"'{made}'")
    assert not (tmp_path / "v.parquet").exists()


@pytest.mark.parametrize(
    "option",
    [
        *("valuator inbag", "bags 5", "ratio fpr_ratio", "performance accuracy"),
        *("exclude age", "drop id", "groups id", "jobs 2"),
    ],
)
def test_nothing_is_fitted(values, tmp_path, option):
    name, given = option.split()
    told = refusal(value(tmp_path, f"--{name}", given, code=2))
    assert told == f"`--from` reads values and fits no models: leave out `--{name}`."


def test_the_file_itself_is_not_replaced(values, tmp_path):
    told = refusal(value(tmp_path, out="made.csv", code=2))
    assert told == f"`--out` is '{tmp_path / 'made.csv'}', which is also an input: name another file."
