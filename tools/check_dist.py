"""Check what is to be released: the wheel and the source archive, and that they install and work.

    python tools/check_dist.py dist

`make dist` builds them before. It says what is wrong in one sentence, with an exit code of 1.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).parent.parent
IN_SOURCES = ("README.md", "CHANGELOG.md", "LICENSE", "CITATION.cff", "pyproject.toml", "conftest.py")


class WrongError(Exception):
    """What is to be released is not as it should be."""


def check(holds: bool, sentence: str) -> None:
    """Refuse what is wrong."""
    if not holds:
        raise WrongError(sentence)


def files_below(folder: Path) -> set[str]:
    """Name all files below a folder that belong to a release, from where it stands."""
    found = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(folder.parent).as_posix() for path in found}


def check_wheel(wheel: Path) -> str:
    """Check the wheel's files and what it says of itself; give its version."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (about,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        told = Parser().parsestr(archive.read(about).decode("utf-8"))
    ours = {name for name in names if ".dist-info/" not in name}
    expected = files_below(ROOT / "src" / "fado")
    check(ours >= expected, f"The wheel lacks {sorted(expected - ours)[:3]}.")
    check(ours <= expected, f"The wheel holds {sorted(ours - expected)[:3]}, which are not of the package.")
    check("fado/py.typed" in ours, "The wheel does not say that it is typed: no fado/py.typed.")
    check(any(name.endswith("licenses/LICENSE") for name in names), "The wheel lacks its license.")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for field, value in {
        "Name": project["name"],
        "Summary": project["description"],
        "License-Expression": project["license"],
        "Requires-Python": project["requires-python"],
    }.items():
        check(told[field] == value, f"The wheel's {field} is {told[field]!r} and not {value!r}.")
    extras = set(told.get_all("Provides-Extra") or ())
    check(extras == set(project["optional-dependencies"]), f"The wheel's extras are {sorted(extras)}.")
    check("# FADO" in told.get_payload(), "The wheel's description is not the README.")
    return str(told["Version"])


def check_sources(archive: Path) -> None:
    """Check that the source archive has all that building and testing take, and nothing else."""
    with tarfile.open(archive) as opened:
        names = {name.split("/", 1)[1] for name in opened.getnames() if "/" in name}
    needed = {f"src/{name}" for name in files_below(ROOT / "src" / "fado")} | files_below(ROOT / "tests")
    lacking = sorted((needed | set(IN_SOURCES)) - names)
    check(not lacking, f"The source archive lacks {lacking[:3]}.")
    strange = sorted(
        name for name in names if "__pycache__" in name or name.startswith((".venv", "demo", "docs/_build"))
    )
    check(not strange, f"The source archive holds {strange[:3]}.")


def check_installed(wheel: Path, version: str) -> None:
    """Install the wheel where nothing else is, and run its demo."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        venv.create(folder / "venv", with_pip=True)
        scripts = folder / "venv" / ("Scripts" if sys.platform == "win32" else "bin")
        python, wanted = scripts / "python", f"fado-ml[all] @ {wheel.resolve().as_uri()}"
        run([python, "-m", "pip", "install", "--quiet", wanted])
        run([python, "-m", "pip", "check"])
        found = run([python, "-I", "-c", "import fado; print(fado.__version__, fado.__file__)"], folder)
        number, place = found.strip().split(maxsplit=1)
        check(number == version, f"The installed package says {number} and the wheel {version}.")
        check(str(folder) in place, f"The package is imported from {place}, and not as installed.")
        run([scripts / "fado", "demo", "--out", "demo"], folder)
        made = {path.name for path in (folder / "demo").iterdir()}
        check({"report.html", "values.parquet", "model"} <= made, f"The demo made {sorted(made)} alone.")


def run(command: list[Path | str], folder: Path = ROOT) -> str:
    """Run a program, and give what it prints."""
    done = subprocess.run(list(map(str, command)), cwd=folder, capture_output=True, text=True, check=False)
    shown = " ".join([Path(command[0]).name, *map(str, command[1:4])])
    check(not done.returncode, f"`{shown}` ended with {done.returncode}: {done.stderr.strip()[-500:]}")
    return done.stdout


def main(folder: str) -> None:
    """Check the one wheel and the one source archive of a folder."""
    wheels, archives = (sorted(Path(folder).glob(pattern)) for pattern in ("*.whl", "*.tar.gz"))
    check(len(wheels) == len(archives) == 1, f"{folder!r} must hold one wheel and one source archive.")
    version = check_wheel(wheels[0])
    stem = f"fado_ml-{version}"
    check(wheels[0].name == f"{stem}-py3-none-any.whl", f"The wheel is called {wheels[0].name}.")
    check(archives[0].name == f"{stem}.tar.gz", f"The source archive is called {archives[0].name}.")
    check_sources(archives[0])
    check_installed(wheels[0], version)
    print(f"fado-ml {version}: the wheel and the source archive are whole, install and work.")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except WrongError as error:
        sys.exit(str(error))
