"""Exploration: see which rows carry the bias, before touching the data."""

from fado.exploration._explore import Exploration, explore
from fado.exploration._files import explore_files

__all__ = ["Exploration", "explore", "explore_files"]
