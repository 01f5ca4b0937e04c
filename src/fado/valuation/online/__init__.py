"""Values of rows that come in batches: valued before their labels are known, learnt after."""

from fado.valuation.online._online import OnlineEntropy

__all__ = ["OnlineEntropy"]
