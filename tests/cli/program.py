"""How tests run the program, and read the one sentence in which it refuses something."""

import re

from typer.testing import CliRunner

from fado.cli._app import build_app


def run(*words, code=0, **options):
    """Run a command, which must end with a code; one that refuses says so in one sentence.

    Options may be given by keyword, several entries of one as a list or a tuple.
    """
    command, *rest = words
    given = []
    for name, entries in options.items():
        for entry in entries if isinstance(entries, list | tuple) else [entries]:
            given += [f"--{name.replace('_', '-')}", entry]
    words = [str(word) for word in (command, *given, *rest)]
    done = CliRunner().invoke(build_app(), words, env={"COLUMNS": "200"})
    assert done.exit_code == code, done.output
    assert code != 2 or len(re.findall("^(?:error|Usage): ", done.stderr, re.MULTILINE)) == 1, done.stderr
    assert "Traceback" not in done.stderr
    return done


def refusal(done):
    """Give the sentence of a command that has refused something."""
    return re.search("^error: (.*)", done.stderr, re.MULTILINE)[1]


def check_sentence(done, pattern):
    """Compare the sentence of a command that has refused something with a regular expression."""
    assert re.search(pattern, refusal(done)), done.stderr


def rows_of_parts(facts):
    """Count the rows of each part of the data that a model was made and measured on."""
    counts = {}
    for group in facts.groups:
        counts[group.part] = counts.get(group.part, 0) + group.rows
    return counts
