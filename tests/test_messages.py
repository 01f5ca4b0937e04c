"""Shared parameters are described once and inserted into docstrings."""

import inspect
import re
import subprocess
import sys
from importlib import import_module

import pytest

from fado._messages import insert_parameters

PUBLIC = ("metrics", "valuation", "utility", "interventions", "active", "generation", "aim", "experiment")
SEED = """random_state : int, RandomState or None, default=None
    The seed. The same seed gives the same result."""


def described(share, size):
    """Describe two.

    Parameters
    ----------
    share : float
        A share.

        Of two paragraphs.
    size : {"small", "large"}
        Which size.

    Returns
    -------
    None

    See Also
    --------
    described : Itself.
    """


def test_a_name_is_replaced_by_its_entry_with_the_indentation_of_its_line():
    @insert_parameters(described)
    class Drawn:
        """Draw.

        Parameters
        ----------
        {share, size}
        own : dict
            Such as ``{"a": 1}``.
        {random_state}
        """

        @insert_parameters()
        def fit(self):
            """Fit.

            Parameters
            ----------
            {random_state}
            """

    assert inspect.getdoc(Drawn) == (
        "Draw.\n\nParameters\n----------\nshare : float\n    A share.\n\n    Of two paragraphs.\n"
        'size : {"small", "large"}\n    Which size.\nown : dict\n    Such as ``{"a": 1}``.\n' + SEED
    )
    assert inspect.getdoc(Drawn.fit) == "Fit.\n\nParameters\n----------\n" + SEED


def test_a_section_is_inserted_as_a_whole_and_a_parameter_from_the_first_that_describes_it():
    def draw():
        """Draw.

        {Parameters, Returns}

        Examples
        --------
        None.

        {random_state}
        """

    def other():
        """Describe one.

        Parameters
        ----------
        random_state : int
            Another seed.
        """

    assert inspect.getdoc(insert_parameters(described, other)(draw)) == (
        "Draw.\n\nParameters\n----------\nshare : float\n    A share.\n\n    Of two paragraphs.\n"
        'size : {"small", "large"}\n    Which size.\n\nReturns\n-------\nNone\n\nExamples\n--------\nNone.'
        "\n\nrandom_state : int\n    Another seed."
    )

    def lost():
        """Draw.

        {nothing}
        """

    with pytest.raises(KeyError, match="nothing"):
        insert_parameters(described)(lost)


def test_no_docstrings_are_needed():
    code = "from fado.metrics import evaluate, fnr_ratio; assert evaluate.__doc__ is None"
    subprocess.run([sys.executable, "-OO", "-c", code], check=True, timeout=60)


def test_no_placeholder_is_left_in_a_public_docstring():
    for package in PUBLIC:
        module = import_module(f"fado.{package}")
        for name in module.__all__:
            public = getattr(module, name)
            members = [public, *vars(public).values()] if inspect.isclass(public) else [public]
            for member in members:
                text = getattr(member, "__doc__", None) or ""
                assert not re.search(r"^ *\{\w[\w, ]*\}$", text, re.MULTILINE), (name, member)
