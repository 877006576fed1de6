"""Digits as a hand draws them: for each, strokes of points in the unit square."""

from math import cos, radians, sin


def arc(x, y, wide, high, start, end, steps=24):
    """Points of an ellipse, from an angle to another, in degrees."""
    angles = (radians(start + (end - start) * k / steps) for k in range(steps + 1))
    return [(x + wide * cos(a), y + high * sin(a)) for a in angles]


DIGITS = {
    0: [arc(0.5, 0.5, 0.22, 0.35, -90, 270)],
    1: [[(0.4, 0.3), (0.52, 0.15), (0.52, 0.85)]],
    2: [[*arc(0.5, 0.33, 0.2, 0.2, 180, 370), (0.3, 0.85), (0.72, 0.85)]],
    3: [[*arc(0.48, 0.32, 0.18, 0.17, -150, 90), *arc(0.48, 0.67, 0.2, 0.18, -90, 150)]],
    4: [[(0.55, 0.12), (0.28, 0.6), (0.72, 0.6)], [(0.6, 0.4), (0.6, 0.88)]],
    5: [[(0.7, 0.15), (0.35, 0.15), (0.33, 0.45), *arc(0.48, 0.63, 0.2, 0.2, -120, 140)]],
    6: [[(0.62, 0.13), (0.4, 0.4), *arc(0.5, 0.65, 0.18, 0.2, 180, 540)]],
    7: [[(0.28, 0.15), (0.72, 0.15), (0.45, 0.87)], [(0.4, 0.5), (0.72, 0.5)]],
    8: [[*arc(0.5, 0.32, 0.16, 0.17, 90, 450), *arc(0.5, 0.67, 0.19, 0.18, -90, 270)]],
    9: [arc(0.5, 0.34, 0.18, 0.19, 0, 360), [(0.66, 0.36), (0.6, 0.88)]],
}
"""The 7 has a bar, as most of those in the data set."""

SAID = """n => document.getElementById('said').textContent
            .includes(`looks like ${n === 8 ? 'an' : 'a'} ${n}`)"""
"""Whether the page has recognized a digit, in JavaScript."""


def draw(page, strokes) -> None:
    """Draw strokes on the page's pad with the mouse."""
    box = page.locator("#pad").bounding_box()
    for stroke in strokes:
        places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in stroke]
        page.mouse.move(*places[0])
        page.mouse.down()
        for place in places[1:]:
            page.mouse.move(*place)
        page.mouse.up()
