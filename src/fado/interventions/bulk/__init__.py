"""Interventions on tables in files: more rows than memory."""

import fado.interventions.bulk._reweighing
import fado.interventions.bulk._sampling  # noqa: F401  # both register what can be done block by block
from fado.interventions.bulk._change import FilesChange, GroupChange
from fado.interventions.bulk._files import reweigh_files, sample_files

__all__ = ["FilesChange", "GroupChange", "reweigh_files", "sample_files"]
