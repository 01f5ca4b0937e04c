"""A card in a real browser: nothing of the data runs, and it fits a phone, a screen and a sheet of paper."""

import pytest
from tests.models.made import chosen

from fado.models import GroupRates

EVIL = "<img src=x onerror=alert(1)></script><script>alert(2)</script>\u202e" + "long" * 40
RATES = {f"{name}{end}": 0.5 for name in ("tpr", "fpr", "selection_rate") for end in ("", "_low", "_high")}
TEST = {"fpr_ratio": 0.7, "fpr_ratio_low": 0.6, "fpr_ratio_high": 0.79, "fpr": 0.11, "tpr": 0.5}


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    model = chosen(
        measured={"test": TEST},
        before={"test": TEST},
        groups=[GroupRates("test", name, 30, 10, RATES, RATES) for name in ("f", EVIL)],
        protected=[EVIL],
    )
    path = tmp_path_factory.mktemp("card") / "card.html"
    model.card_page(path, purpose=EVIL)
    return path.as_uri()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("media", "width"), [("screen", 1240), ("screen", 400), ("print", 688)])
def test_the_card_fits_and_runs_nothing(browser, address, media, width, scheme):
    """688 pixels are what margins of 14 mm leave of A4."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.call("Emulation.setEmulatedMedia", media=media, features=features)
    try:
        browser.open(address, width=width)
        assert browser.shown("#lead p") == (
            "On test rows, which were not used to make the model, the line is missed, budget exceeded by the "
            "estimate: 11.0 % for 10 %; fpr_ratio 0.700 (95 % interval 0.600 to 0.790), at least 0.8 "
            "required."
        )
        assert browser.evaluate("document.getElementById('lead').className") == "card bad"
        rows = browser.evaluate("document.querySelectorAll('section')[1].querySelectorAll('tbody tr').length")
        assert rows == 4
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
        displayed = browser.evaluate("getComputedStyle(document.querySelector('table')).display")
        assert displayed == ("block" if width == 400 else "table")
        assert browser.troubles() == []
    finally:
        browser.call("Emulation.setEmulatedMedia", media="", features=[])
