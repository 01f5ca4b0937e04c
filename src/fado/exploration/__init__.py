"""Exploration: find the rows that contribute to bias before you change the data."""

from fado.exploration._explore import Exploration, explore
from fado.exploration._files import explore_files

__all__ = ["Exploration", "explore", "explore_files"]
