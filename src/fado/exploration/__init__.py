"""Exploration: see which rows carry the bias, before touching the data."""

from fado.exploration._explore import Exploration, explore

__all__ = ["Exploration", "explore"]
