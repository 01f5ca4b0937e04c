"""Help: every command and option has one, and it imports nothing that takes time."""

import inspect
import json
import os
import subprocess
import sys
from typing import get_args

import pytest
import typer

from fado import tabular
from fado.active import DEFAULT_ALPHA
from fado.cli import _options, query, sample
from fado.cli._app import build_app

HEAVY = {"sklearn", "lightgbm", "pandas", "pyarrow", "scipy"}
PLUGIN = """
from fado.interventions import BaseIntervention, Setting, register_intervention

@register_intervention("mine", settings=[Setting("depth", "share", 0.5, help="How deep.")])
class Mine(BaseIntervention):
    pass
"""


def commands(command, path=()):
    """Give every command of the program with the words that lead to it."""
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*path, name))
    yield path, command


PROGRAM = list(commands(typer.main.get_command(build_app())))


@pytest.mark.parametrize(
    "command", [own for _, own in PROGRAM], ids=[" ".join(("fado", *path)) for path, _ in PROGRAM]
)
def test_every_command_and_option_has_help(command):
    assert command.help
    assert [own.name for own in command.params if not getattr(own, "help", None)] == []


def test_the_program_has_the_commands_of_the_design():
    assert {" ".join(path) for path, _ in PROGRAM} == {
        "", "value", "sample", "reweigh", "query", "generate", "explore", "aim", "demo", "frontier",
        "predict", "audit", "experiment", "experiment init", "experiment run", "experiment status",
        "experiment report",
    }  # fmt: skip


HELPED = """
import json, sys
from fado.cli import main
for words in json.loads(sys.argv[1]):
    sys.argv = ["fado", *words, "--help"]
    try:
        main()
    except SystemExit:
        print(words, *sorted({name.partition(".")[0] for name in sys.modules} & HEAVY), file=sys.stderr)
""".replace("HEAVY", repr(HEAVY))


def helped(*paths, **environment):
    """Ask for help in a process of its own; give what it prints, and what it has imported after each."""
    command = [sys.executable, "-c", HELPED, json.dumps(paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | environment)
    return done.stdout, done.stderr.splitlines()


def test_help_imports_nothing_that_takes_time():
    paths = [path for path, _ in PROGRAM]
    printed, imported = helped(*paths)
    assert printed.count("Usage: fado") == len(paths)
    assert imported == [str(list(path)) for path in paths]


@pytest.mark.parametrize("command", [sample.sample, sample.reweigh], ids=["sample", "reweigh"])
def test_what_help_says_is_what_is_registered(command):
    declared = inspect.signature(command, eval_str=True).parameters
    offered = sample.signature_with_plug_ins(command).parameters
    assert [*offered, "of_plug_ins"] == list(declared)
    for name, parameter in offered.items():
        assert get_args(parameter.annotation)[0] == get_args(declared[name].annotation)[0]
    entries = sample.entries_of(command.__name__)
    settings = {each.name: each for entry in entries.values() for each in entry.settings}
    assert set(settings) == set(sample.SETTINGS[command.__name__])
    for name, setting in settings.items():
        kind, option = get_args(declared[name].annotation)
        assert option.help == setting.help
        assert get_args(get_args(kind)[0]) == tuple(setting.choices)
        defaults = {}
        for key, entry in entries.items():
            if sample._takes(entry, name):
                default = inspect.signature(entry.kind).parameters[name].default
                defaults[key] = {each.name: each.default for each in entry.settings}.get(name, default)
        one, *others = set(map(str, defaults.values()))
        by_key = ", ".join(f"{default} for {key}" for key, default in defaults.items())
        assert option.show_default == (by_key if others else one)


def test_defaults_are_those_of_the_library():
    assert _options.MIN_GROUP_SIZE == tabular.MIN_GROUP_SIZE
    assert query.DEFAULT_ALPHA == DEFAULT_ALPHA


def test_a_plug_in_that_is_installed_has_its_options(tmp_path):
    (tmp_path / "mine.py").write_text(PLUGIN)
    about = tmp_path / "mine-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[fado.plugins]\nmine = mine\n")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    printed, _ = helped(["sample"], PYTHONPATH=path)
    assert "--depth" in printed
    assert "--strength" in printed
