"""How the program starts and ends: Ctrl-C at any moment, pipes that close, extras that are not there."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fado import Valuation
from fado.cli import main
from fado.cli._app import in_sentences, interruptible
from fado.experiment import Experiment

N = 200
PROGRAM = "import sys; sys.argv[0] = 'fado'; from fado.cli import main; main()"
WITHOUT = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {missing!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocker())
"""


def without(names):
    """Code before the program that makes packages look as if they were not installed."""
    return WITHOUT.format(missing=set(names))


posix = pytest.mark.skipif(os.name != "posix", reason="signals and pipes as Unix has them")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(18, 90, N), "sex": rng.choice(["f", "m"], N)})
    frame["default"] = (rng.random(N) < 0.3).astype(int)
    frame.to_csv(folder / "d.csv", index=False)
    Valuation.from_probabilities(rng.random(N), {"sex": rng.random(N)}).save(folder / "v.parquet")
    return folder


NAMED = ["d.csv", "--target", "default", "--protected", "sex"]
VALUE = ["value", *NAMED, "--bags", "5", "--out", "out.parquet"]
SAMPLE = ["sample", *NAMED, "--values", "v.parquet", "--alpha", "0.5", "--out", "out.parquet"]
REWEIGH = ["reweigh", *NAMED, "--intervention", "rw", "--out", "out.parquet"]
EXPLORE = ["explore", *NAMED, "--values", "v.parquet", "--retrain", "0", "--out", "out.html"]


def start(files, words, *, before="", **streams):
    code = before + PROGRAM
    return subprocess.Popen([sys.executable, "-c", code, *words], cwd=files, text=True, **streams)


def run(files, words, **settings):
    process = start(files, words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **settings)
    return process, *process.communicate(timeout=120)


PRESSED = """
import os, signal, sys
class Presser:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Presser())
"""


@posix
@pytest.mark.parametrize("module", ["fado.cli._app", "typer", "numpy._core.multiarray", "fado.cli.value"])
def test_ctrl_c_while_the_program_is_imported_ends_it_without_a_word(files, module):
    # numpy turns an interrupt in the middle of its own import into another error
    process, printed, errors = run(files, VALUE, before=PRESSED.format(module=module))
    assert process.returncode == -signal.SIGINT  # a shell shows 130
    assert (printed, errors) == ("", "")


@posix
@pytest.mark.parametrize(
    ("words", "module"),
    [(VALUE, "pandas"), (VALUE, "sklearn"), (VALUE, "lightgbm"), (EXPLORE, "fado.exploration")],
)
def test_ctrl_c_while_a_command_imports_more(files, words, module):
    process, printed, errors = run(files, words, before=PRESSED.format(module=module))
    assert process.returncode == 130
    assert (printed, errors) == ("", "error: interrupted.\n")


@posix
def test_ctrl_c_while_a_command_works_is_one_sentence_and_leaves_no_file(files):
    words = [*VALUE[:-4], "--bags", "2000", "--out", "never.parquet"]
    process = start(files, words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    line = process.stderr.readline()  # the first progress: it works
    assert line.startswith("fits: ")
    process.send_signal(signal.SIGINT)
    printed, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert printed == ""
    assert [line for line in errors.splitlines() if not line.startswith("fits: ")] == ["error: interrupted."]
    assert not [path for path in files.iterdir() if "never" in path.name]


def test_an_interrupt_that_a_library_turns_into_its_own_error_is_still_one(capsys):
    @in_sentences
    def command():
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise ImportError("numpy._core.multiarray failed to import") from None

    with pytest.raises(SystemExit) as stop:
        command()
    assert stop.value.code == 130
    assert capsys.readouterr().err == "error: interrupted.\n"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_of_somebody_elses_stays():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interruptible() as interrupts:
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
            assert interrupts == []
    finally:
        signal.signal(signal.SIGINT, before)


@posix
@pytest.mark.parametrize(
    ("words", "streams", "unbuffered"),
    [
        (["--help"], ["stdout"], ""),
        (["value", "--help"], ["stdout"], "1"),
        (["--version"], ["stdout"], ""),
        (REWEIGH, ["stdout"], "1"),
        (VALUE, ["stderr"], ""),
        (SAMPLE, ["stdout", "stderr"], ""),
        (["value"], ["stderr"], ""),
    ],
    ids=lambda case: " ".join(case)[:30],
)
def test_a_closed_pipe_ends_the_program_without_a_word(files, monkeypatch, words, streams, unbuffered):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    reader, writer = os.pipe()
    os.close(reader)
    closed = {name: writer if name in streams else subprocess.PIPE for name in ("stdout", "stderr")}
    process = start(files, words, **closed)
    os.close(writer)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 141
    assert [line for line in (errors or "").splitlines() if not line.startswith("fits: ")] == []


@posix
@pytest.mark.parametrize(("words", "code"), [(["--help"], 0), (REWEIGH, 0), (["value"], 2)], ids=str)
def test_streams_that_are_not_there_at_all(files, words, code):
    command = f'exec {sys.executable} -c "{PROGRAM}" {" ".join(words)} >&- 2>&-'
    assert subprocess.run(["/bin/sh", "-c", command], cwd=files, check=False).returncode == code


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_device_is_told_once(files, monkeypatch, unbuffered):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    with Path("/dev/full").open("w") as full:
        process = start(files, ["--help"], stdout=full, stderr=subprocess.PIPE)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert errors == "error: the output cannot be written: No space left on device.\n"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("typer", ["--help"]),
        ("typer", VALUE),
        ("rich", ["experiment", "status", "x"]),
        ("shellingham", ["demo"]),
    ],
)
def test_without_the_extra_of_the_command_line(files, name, words):
    process, printed, errors = run(files, words, before=without([name]))
    assert process.returncode == 2
    assert printed == ""
    assert errors == f"error: the command line needs {name}: install it with `pip install 'fado-ml[cli]'`.\n"


SEVERAL = """
import sys
from fado.cli import main
for words in {commands!r}:
    sys.argv = ["fado", *words]
    try:
        main()
    except SystemExit as stop:
        print("code", stop.code, file=sys.stderr)
"""


def test_commands_that_need_no_extra_do_without_all(files):
    several = [VALUE, SAMPLE, REWEIGH, EXPLORE]
    code = without(["altair", "vl_convert", "dask", "distributed", "polars"]) + SEVERAL.format(
        commands=several
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=files, capture_output=True, text=True, check=True)
    codes = [line for line in done.stderr.splitlines() if line.startswith("code")]
    assert codes == ["code 0"] * len(several), done.stderr


def test_without_dask(files):
    Experiment.write_example(files / "c.toml")
    words = ["experiment", "run", "c.toml", "--store", "s", "--dask", "tcp://127.0.0.1:1"]
    process, _, errors = run(files, words, before=without(["distributed"]))
    assert process.returncode == 2
    *_, line = errors.splitlines()  # after what there is to know about the columns
    assert line == "error: `--dask` needs Dask: install it with `pip install 'fado-ml[dask]'`."


def test_whatever_else_is_missing_is_one_sentence(capsys):
    @in_sentences
    def command():
        raise ModuleNotFoundError("No module named 'lightgbm'", name="lightgbm")

    with pytest.raises(SystemExit) as stop:
        command()
    assert stop.value.code == 2
    assert capsys.readouterr().err == (
        "error: lightgbm is not installed: install it with `pip install 'fado-ml[all]'`.\n"
    )


def test_faults_of_the_program_itself_are_not_dressed_up():
    @in_sentences
    def command():
        raise AttributeError("a fault")

    with pytest.raises(AttributeError, match="a fault"):
        command()


def test_the_entry_point_imports_nothing_that_takes_time():
    code = "import sys; before = set(sys.modules); import fado.cli; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = set(done.stdout.split())
    assert imported - sys.stdlib_module_names == {"fado", "fado._version", "fado.cli"}
    assert not imported & {"signal", "enum", "re", "typing", "inspect"}
    assert main.__module__ == "fado.cli"
