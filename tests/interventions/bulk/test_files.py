"""What is refused, what is written, and how much is held, of tables in files."""

import errno
import tracemalloc
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

import fado
from fado import RandomPrevalenceSampler, Reweigher, UtilityAwareReweigher, Valuation
from fado.interventions import FairlearnGrid, NoIntervention
from fado.interventions.bulk import _blocks, _selection, _work, _writing

ASKED = {"target": "hired", "protected": "sex"}


def in_parts(frame, folder, ends, **how):
    folder.mkdir()
    for number, (first, end) in enumerate(pairwise(ends)):
        table = pa.Table.from_pandas(frame.iloc[first:end], preserve_index=False)
        pa.parquet.write_table(table, folder / f"{number}.parquet", **how)
    return folder


def refused(match, paths, function=fado.sample_files, kind=ValueError, **asked):
    with pytest.raises(kind, match=match):
        function(paths, **{**ASKED, **asked})


def test_values_of_another_table_are_refused(frame, folder, values, tmp_path):
    out = tmp_path / "s"
    in_parts(frame.iloc[:-1], tmp_path / "shorter", [0, 899])
    refused("are of 900 rows, and the table has 899", tmp_path / "shorter", values=values, out=out)
    frame.iloc[:-1].to_csv(tmp_path / "shorter.csv", index=False)
    refused("are of 900 rows, and the table has 899", tmp_path / "shorter.csv", values=values, out=out)
    pd.concat([frame, frame]).to_csv(tmp_path / "longer.csv", index=False)
    refused("are of 900 rows, and the table has", tmp_path / "longer.csv", values=values, out=out)
    refused("'age<30', which", folder, values=values, out=out, protected="age < 30")
    assert not out.exists()


def test_values_made_with_other_labels_are_refused(frame, folder, tmp_path):
    asked = {**ASKED, "train_rows": 200, "n_bags": 5, "drop": ["when", "region"]}
    fado.value_files(folder, out=tmp_path / "v", **asked)
    change = fado.sample_files(folder, values=tmp_path / "v", out=tmp_path / "s", **ASKED)
    assert change.n_rows == 900
    turned = in_parts(frame.iloc[::-1], tmp_path / "turned", [0, 900])
    refused("or with the rows in another order", turned, values=tmp_path / "v", out=tmp_path / "x")


def test_rows_without_a_value_are_refused_as_in_memory(folder, tmp_path):
    numbers = np.full(900, 0.5)
    numbers[[70, 500]] = np.nan
    scales = Valuation.from_probabilities([0.5], {"sex": [0.5]}).scales
    Valuation.from_values({"y": numbers, "sex": np.full(900, 0.5)}, scales=scales).save(
        tmp_path / "v.parquet"
    )
    match = r"2 of 900 rows have no utility, .* \(the first is row 70, counted from 0\)"
    refused(match, folder, values=tmp_path / "v.parquet", out=tmp_path / "s")


def test_effects_and_files_that_are_no_values_are_refused(folder, tmp_path):
    effects = Valuation.from_values({"y": np.arange(900.0), "sex": np.arange(900.0)})
    effects.save(tmp_path / "v.parquet")
    effects.save(tmp_path / "v.csv")
    refused("another scale than .* needs all rows in memory", folder, values=tmp_path / "v.parquet", out="s")
    refused("a file that ends in .parquet", folder, values=tmp_path / "v.csv", out=tmp_path / "s")
    refused("which does not exist", folder, values=tmp_path / "none", out=tmp_path / "s")
    refused("`values` must be given, as UtilityAwarePrev", folder, out=tmp_path / "s")


def test_what_needs_all_rows_says_so(folder, tmp_path):
    class Mine(Reweigher):
        pass

    out = tmp_path / "w"
    for intervention in (FairlearnGrid(), Mine()):
        refused("needs all rows in memory", folder, fado.reweigh_files, intervention=intervention, out=out)
    refused("needs all rows in memory", folder, intervention=NoIntervention(), out=out)
    refused("must change rows, and Reweigher changes weights", folder, intervention=Reweigher(), out=out)
    refused("must be an intervention", folder, kind=TypeError, intervention="rps", out=out)


def test_places_that_cannot_be_written_are_refused_before_a_row_is_read(folder, values, tmp_path):
    asked = {"values": values, "intervention": RandomPrevalenceSampler()}
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")
    (tmp_path / ".full.0123abcd.part").mkdir()  # of one who was killed when all was done
    refused("is not empty: name another `out`", folder, out=tmp_path / "full", **asked)
    assert not (tmp_path / ".full.0123abcd.part").exists()
    refused("must be a directory, or end in .parquet", folder, out=tmp_path / "s.csv", **asked)
    refused("which is read as well", folder, out=folder, **asked)
    refused("would read the next time", folder, out=folder / "s", **asked)
    refused(r"\*' would read the next time", f"{folder}/*", out=folder / "s", **asked)
    refused(r"\*' would read the next time", f"{folder}/*", out=folder / "s.parquet", **asked)
    refused("which is read as well", folder, out=values, values=values)
    refused("does not exist: create it first", folder, out=tmp_path / "no" / "s", **asked)


def test_other_settings_are_refused_in_a_sentence(frame, folder, tmp_path):
    rps, out = RandomPrevalenceSampler(), tmp_path / "s"
    refused(
        "`target` must name a column .* got 'hird'",
        folder,
        intervention=rps,
        out=out,
        target="hird",
    )
    refused("'age' has more than 20 different numbers", folder, intervention=rps, out=out, protected="age")
    refused("is true in no row", folder, intervention=rps, out=out, protected="age > 200")
    refused("`weight` names 'sex', which holds text", folder, intervention=rps, out=out, weight="sex")
    refused("must be one of the labels 0 and 1", folder, out=out, intervention=rps.set_params(pos_label=7))
    in_parts(frame.assign(hired=None, survey=0.0), tmp_path / "bad", [0, 900])
    rps = RandomPrevalenceSampler()
    refused("The target is missing in", tmp_path / "bad", intervention=rps, out=out)
    in_parts(frame.assign(survey=0.0), tmp_path / "light", [0, 900])
    refused("`weight` is zero in every row", tmp_path / "light", intervention=rps, out=out, weight="survey")
    refused("must be in", folder, intervention=RandomPrevalenceSampler(strength=2.0), out=out)
    assert not out.exists()


def test_a_bound_too_small_names_the_least_that_works(folder, tmp_path):
    asked = {**ASKED, "intervention": RandomPrevalenceSampler(random_state=0)}
    with pytest.raises(
        ValueError, match=r"`memory` of 2.0 MB is too small: .* the least that works is"
    ) as told:
        fado.sample_files(folder, out=tmp_path / "s", memory="2MB", **asked)
    least = int(str(told.value).split("works is ")[1].split()[0])
    fado.sample_files(folder, out=tmp_path / "s", memory=f"{least}MB", **asked)
    with pytest.raises(ValueError, match="too small"):
        fado.sample_files(folder, out=tmp_path / "t", memory=f"{least - 1}MB", **asked)


@pytest.mark.parametrize(
    ("code", "sentence"), [(errno.ENOSPC, r", .* are free\): make room"), (errno.EIO, r"\): put that right")]
)
def test_what_cannot_be_written_leaves_nothing(folder, tmp_path, monkeypatch, code, sentence):
    def fail(*_):
        raise OSError(code, "it failed")

    monkeypatch.setattr(_writing, "_write", fail)
    for name in ("w", "w.parquet"):
        with pytest.raises(
            OSError, match=rf"^The rows cannot be written to '{tmp_path}/w.*parquet' \(it failed{sentence}"
        ):
            fado.reweigh_files(folder, out=tmp_path / name, intervention=Reweigher(), **ASKED)
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("small_blocks")
def test_neither_memory_nor_the_cut_into_files_changes_a_byte(frame, valuation, values, tmp_path):
    asked = {**ASKED, "values": values, "weight": "survey"}
    asked["intervention"] = UtilityAwareReweigher(floor=0.1, prevalence_correction=1.0)
    found = set()
    for number, (ends, rows) in enumerate(
        [([0, 900], 900), ([0, 7, 64, 500, 900], 33), ([0, 899, 900], 128)]
    ):
        cut = in_parts(frame, tmp_path / str(number), ends, row_group_size=rows)
        for memory in ("90MB", "8GB"):
            out = tmp_path / f"{number}-{memory}.parquet"
            fado.reweigh_files(cut, out=out, memory=memory, **asked)
            found.add(out.read_bytes())
    assert len(found) == 1


def test_parts_have_names_in_order_and_rows_in_theirs(frame, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(_writing, "_ROWS_OF_A_PART", 256)
    monkeypatch.setattr(_writing, "_MOST_ROWS", 128)
    fado.reweigh_files(folder, out=tmp_path / "w", intervention=Reweigher(), **ASKED)
    fado.reweigh_files(folder, out=tmp_path / "w.parquet", intervention=Reweigher(), **ASKED)
    parts = sorted((tmp_path / "w").iterdir())
    assert [path.name for path in parts] == [f"part-0000{number}.parquet" for number in range(4)]
    tables = [pa.parquet.read_table(path) for path in parts]
    assert [table.num_rows for table in tables] == [256, 256, 256, 132]
    assert pa.concat_tables(tables).equals(pa.parquet.read_table(tmp_path / "w.parquet"))
    footer = pa.parquet.read_metadata(parts[0])
    assert (footer.num_row_groups, footer.row_group(0).column(0).compression) == (2, "ZSTD")


@pytest.mark.parametrize("function", [fado.sample_files, fado.reweigh_files])
def test_eight_times_the_rows_take_no_more_memory(tmp_path, monkeypatch, function):
    monkeypatch.setattr(_blocks.Lockstep.blocks, "__defaults__", (1024,))
    monkeypatch.setattr(_work, "BLOCK_ROWS", 1024)
    monkeypatch.setattr(_writing, "_MOST_ROWS", 1024)
    monkeypatch.setitem(_selection.select_least.__kwdefaults__, "most_held", 200)
    blocks, in_arrow = _blocks.Lockstep.blocks, []

    def watched(*asked):
        for block in blocks(*asked):
            in_arrow.append(pa.total_allocated_bytes())
            yield block

    monkeypatch.setattr(_blocks.Lockstep, "blocks", watched)

    def peak(n_rows):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({"sex": rng.choice([0, 1], n_rows), "more": rng.random(n_rows)})
        frame["hired"] = (rng.random(n_rows) < 0.2 + 0.3 * frame["sex"]).astype(int)
        table = in_parts(frame, tmp_path / str(n_rows), [0, n_rows // 3, n_rows], row_group_size=2000)
        values = tmp_path / f"{n_rows}.parquet"
        Valuation.from_probabilities(rng.random(n_rows), {"sex": rng.random(n_rows)}).save(values)
        pa.parquet.write_table(pa.parquet.read_table(values), values, row_group_size=2000)
        in_arrow[:] = [pa.total_allocated_bytes()]
        tracemalloc.start()
        function(table, values=values, out=tmp_path / f"out-{n_rows}", **ASKED)
        in_python = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return in_python + max(in_arrow) - in_arrow[0]

    peak(10_000)  # what is imported and cached on the way does not count
    # Both have more rows than Arrow reads ahead; Python's own tables of names grow once in a while.
    most = min(peak(400_000), peak(400_001)) - min(peak(50_000), peak(50_001))
    assert most < 700_000  # two bytes for every further row: no column of them is held
