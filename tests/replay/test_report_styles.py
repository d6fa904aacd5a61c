"""The colours of the page have the contrast that WCAG AA asks for, light and dark."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

TEXT_MIN = 4.5
GRAPHIC_MIN = 3.0
LOOKS = ("active", "resolved", "shaken", "ungrounded", "weakened", "abandoned")
TEXT_ON = {
    "ink": ("paper", "card", "sunk", "present", "future", "falls-wash", "selected-wash"),
    "muted": ("paper", "card", "sunk", "future", "falls-wash", "selected-wash"),
    "focus": ("card", "sunk", "falls-wash"),
    "falls": ("card",),
    "against": ("card", "sunk"),
    "unsure": ("card",),
    "good": ("card",),
    "bad": ("card",),
    "on-primary": ("falls",),
    "paper": ("ink",),
    "card": ("bad",),
    **dict.fromkeys(LOOKS, ("card", "sunk")),
}
GRAPHICS_ON = {
    "control": ("paper", "card"),
    "focus": ("paper", "card", "present", "future"),
    "quiet": ("card",),
    "against": ("card", "present", "future"),
    "falls": ("card", "falls-wash", "present"),
    "alarm": ("paper", "card", "present"),
    "good": ("card", "present"),
    "bad": ("card", "present"),
    "unsure": ("card", "present"),
    **dict.fromkeys(LOOKS, ("card", "sunk", "present", "falls-wash")),
}


def _schemes() -> dict[str, dict[str, str]]:
    """The colours by name, of the light scheme and of the dark one."""
    styles = (files("replay.report") / "report.css").read_text()
    blocks = re.findall(r":root \{(.*?)\}", styles, re.DOTALL)
    light, dark = (dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block)) for block in blocks)
    return {"light": light, "dark": {**light, **dark}}


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours, from 1 to 21 (WCAG 2.2)."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def test_the_ratio_is_that_of_the_standard() -> None:
    """Black on white is 21 and a colour on itself 1; a known grey is just below what text needs."""
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#123456", "#123456") == 1
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    ("pairs", "least"), [(TEXT_ON, TEXT_MIN), (GRAPHICS_ON, GRAPHIC_MIN)], ids=["text", "graphics"]
)
def test_contrast(scheme: str, pairs: dict[str, tuple[str, ...]], least: float) -> None:
    """Text has at least 4.5 to 1 on what it stands on, marks and lines have 3 to 1."""
    colours = _schemes()[scheme]
    low = [
        f"{front} on {back}: {ratio:.2f}"
        for front, backs in pairs.items()
        for back in backs
        if (ratio := contrast(colours[front], colours[back])) < least
    ]
    assert low == []


def test_both_schemes_name_the_same_colours() -> None:
    """No colour of the light scheme shows through in the dark one."""
    styles = (files("replay.report") / "report.css").read_text()
    light, dark = re.findall(r":root \{(.*?)\}", styles, re.DOTALL)
    named = [set(re.findall(r"--([\w-]+): #", block)) for block in (light, dark)]
    assert named[0] == named[1]
