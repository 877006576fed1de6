"""The palette: legible on white and on dark pages, told apart by colour-blind readers."""

from itertools import combinations

import pytest

from minipaddle.viz import gradient_norms as norms
from minipaddle.viz import style

WHITE, DARK = "#ffffff", "#111111"  # JupyterLab's two pages


def channels(colour):
    """Linear light of red, green and blue: IEC 61966-2-1."""
    values = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    return [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values]


def luminance(colour):
    r, g, b = channels(colour)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(a, b):
    """WCAG 2.1's contrast ratio, from 1 to 21."""
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def test_the_measure_itself():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("role", style.LOOKS)
def test_text_in_nodes_has_the_contrast_wcag_asks_of_text(role):
    look = style.LOOKS[role]
    if look.shape != "point":
        assert contrast(look.fill, look.ink) >= 4.5


@pytest.mark.parametrize("page", [WHITE, DARK])
def test_what_stands_on_the_page_is_legible_on_both(page):
    assert contrast(style.GREY, page) >= 4.3  # near the most that any one colour reaches on both
    lines = style.YOURS, norms.LOW, norms.MIDDLE, norms.HIGH, norms.RED
    for colour in lines:
        assert contrast(colour, page) >= 3  # what WCAG asks of lines
    for step in range(41):
        assert contrast(norms.colour(10 ** (step / 4 - 6.5)), page) >= 3


def test_no_grey_does_better_on_both_pages():
    worst = {
        v: min(contrast(f"#{v:02x}{v:02x}{v:02x}", p) for p in (WHITE, DARK)) for v in range(256)
    }
    assert max(worst.values()) < 4.5
    assert worst[int(style.GREY[1:3], 16)] == max(worst.values())


# Viénot, Brettel, Mollon, "Digital video colourmaps for checking the legibility of displays by
# dichromats" (1999): what remains of linear red, green and blue.
BLIND = {
    "protan": ((0.11238, 0.88762, 0), (0.11238, 0.88762, 0), (0.00401, -0.00401, 1)),
    "deutan": ((0.29275, 0.70725, 0), (0.29275, 0.70725, 0), (-0.02234, 0.02234, 1)),
}


def seen(colour, matrix):
    light = channels(colour)
    return [sum(a * b for a, b in zip(row, light)) for row in matrix]


@pytest.mark.parametrize("kind", BLIND)
def test_colour_blind_readers_tell_the_roles_of_a_tape_apart(kind):
    roles = ("input", "parameter", "elementwise", "movement", "reduction", "opaque", "layer")
    for a, b in combinations(roles, 2):
        one, two = (seen(style.LOOKS[r].fill, BLIND[kind]) for r in (a, b))
        assert sum(abs(x - y) for x, y in zip(one, two)) > 0.12, (a, b)


def test_no_two_roles_look_alike():
    styles = style.LOOKS.values()
    assert len({(look.fill, look.shape) for look in styles}) == len(styles)
    tape = ("input", "parameter", "elementwise", "movement", "reduction", "opaque", "layer")
    assert len({style.LOOKS[r].shape for r in tape}) == len(tape)


@pytest.mark.parametrize(
    ("n", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KB"), (3 << 20, "3.0 MB"), (5 << 40, "5120.0 GB")],
)
def test_sizes_are_for_people(n, text):
    assert style.bytes_text(n) == text


def test_counts_have_their_plural():
    assert [style.count(n, "record") for n in (0, 1, 2000)] == [
        "0 records",
        "1 record",
        "2,000 records",
    ]
