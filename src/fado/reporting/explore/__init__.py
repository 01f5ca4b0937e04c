"""What there is to see in a table and its values: the page and its single charts."""

from fado.reporting.explore._charts import explore_chart
from fado.reporting.explore._page import explore_page

__all__ = ["explore_chart", "explore_page"]
