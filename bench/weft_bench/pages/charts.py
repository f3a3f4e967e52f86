# SPDX-License-Identifier: MIT
"""Pictures as inline SVG, from data alone. Each has a title and a description for a screen reader; the page's style sheet
gives the colours, light and dark. Series differ in marker and dash as well as in colour."""

import math

from markupsafe import Markup, escape

from weft_bench.printer import interval, number, times
from weft_bench.stats import Pool, verdict

WIDTH, HEIGHT = 720, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 16, 64
STYLES = 6  # c0 ... c5 in the style sheet
MARKERS = ("circle", "square", "diamond", "cross", "circle", "square")
LINE = 22  # of a bar chart
THIN = 3  # of the picture of all rows


def ticks(low, high, log):
    """Round numbers from low to high.

    >>> ticks(1, 1000, True), ticks(0, 10, False)
    ([1, 10, 100, 1000], [0, 2, 4, 6, 8, 10])
    >>> ticks(0.6, 3.0, True)
    [1, 2]
    """
    if log:
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        steps = (1,) if last - first > 2 else (1, 2, 5)
        values = [step * 10 ** power for power in range(first, last + 1) for step in steps]
        return [value for value in values if low * 0.999 <= value <= high * 1.001]
    step = 10 ** math.floor(math.log10((high - low) / 4 or 1))
    step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (step * factor) <= 6)
    first = math.ceil(low / step)
    return [round((first + count) * step, 10) for count in range(int((high - first * step) / step + 1.001))]


class Axis:
    """From values to pixels.

    >>> axis = Axis([1, 100], True, 0, 200)
    >>> axis(1), axis(10), axis(100)
    (0.0, 100.0, 200.0)
    """

    def __init__(self, values, log, start, end, margin=0.0):
        low, high = min(values), max(values)
        if log:
            low, high = low / (1 + margin), high * (1 + margin)
            if low == high:
                low, high = low / 2, high * 2
        else:
            low = min(low, 0)
            high = high * (1 + margin) or 1
        self.low, self.high, self.log, self.start, self.end = low, high, log, start, end

    def __call__(self, value):
        if self.log:
            share = math.log(max(value, 1e-300) / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self):
        return ticks(self.low, self.high, self.log)


def text(x, y, words, anchor="middle", kind=""):
    kind = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{kind}>{escape(words)}</text>'


def marker(shape, x, y, style):
    kind = f'class="m c{style}"'
    if shape == "square":
        return f'<rect {kind} x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8"/>'
    if shape == "diamond":
        return f'<path {kind} d="M{x:.1f} {y - 5:.1f}l5 5l-5 5l-5 -5z"/>'
    if shape == "cross":
        return f'<path class="l c{style}" d="M{x - 4:.1f} {y - 4:.1f}l8 8m0 -8l-8 8"/>'
    return f'<circle {kind} cx="{x:.1f}" cy="{y:.1f}" r="4"/>'


def figure(identity, title, description, body, height=HEIGHT):
    title, description = escape(title), escape(description)
    return Markup(f'<figure><figcaption>{title}</figcaption><div class="wide" tabindex="0" role="region" aria-label="{title}">'
            f'<svg role="img" viewBox="0 0 {WIDTH} {height}" aria-labelledby="{identity}-t {identity}-d">'
            f'<title id="{identity}-t">{title}</title><desc id="{identity}-d">{description}</desc>{body}</svg></div></figure>')


def describe(series, unit):
    """
    >>> describe([("Weft", [("64", 2.0), ("1024", 1.0)])], "M/s")
    'Weft: 64 2 M/s, 1024 1 M/s.'
    """
    parts = []
    for name, points in series:
        parts.append(f"{name}: " + ", ".join(f"{point[0]} {number(point[1])} {unit}" for point in points) + ".")
    return " ".join(parts)


def legend(names, y):
    parts, x = [], LEFT
    for style, name in enumerate(names):
        parts.append(f'<path class="l c{style}" d="M{x} {y - 4}h18"/>' + marker(MARKERS[style], x + 9, y - 4, style))
        parts.append(text(x + 24, y, name, "start"))
        x += 40 + 7 * len(name)
    return "".join(parts)


def lines(identity, title, series, x_title, unit, log_y=True):
    """series: [(name, [(x label, y), ...])]; labels stand in the order in which they first come."""
    series = [(name, points) for name, points in series if points][:STYLES]
    labels = list(dict.fromkeys(label for _, points in series for label, _ in points))
    values = [value for _, points in series for _, value in points]
    x_of = {label: LEFT + 24 + (WIDTH - LEFT - RIGHT - 48) * place / max(len(labels) - 1, 1)
            for place, label in enumerate(labels)}
    axis = Axis(values, log_y, HEIGHT - BOTTOM, TOP, 0.15)
    body = grid(axis)
    body += "".join(text(x, HEIGHT - BOTTOM + 16, label) for label, x in x_of.items())
    body += text((LEFT + WIDTH) / 2, HEIGHT - BOTTOM + 34, x_title)
    for style, (_, points) in enumerate(series):
        path = "L".join(f"{x_of[label]:.1f} {axis(value):.1f}" for label, value in points)
        body += f'<path class="l c{style}" d="M{path}"/>'
        for label, value in points:
            body += f"<g><title>{escape(label)}: {number(value)} {unit}</title>"
            body += marker(MARKERS[style], x_of[label], axis(value), style) + "</g>"
    body += text(LEFT, TOP - 4, unit, "start") + legend([name for name, _ in series], HEIGHT - 6)
    return figure(identity, title, describe(series, unit), body)


def grid(axis):
    body = ""
    for value in axis.ticks():
        body += f'<path class="g" d="M{LEFT} {axis(value):.1f}H{WIDTH - RIGHT}"/>'
        body += text(LEFT - 8, axis(value) + 4, number(value), "end")
    return body


def style_of(ratio):
    return {"faster": 0, "slower": 1}.get(verdict(ratio), 2)


def intervals(identity, title, rows, meaning):
    """rows: [(label, (middle, low, high))] as dots with their intervals over a logarithmic axis; 1 is `the same`. An unknown
    interval has no line."""
    height = TOP + LINE * len(rows) + 40
    left = 300
    axis = Axis([bound for _, ratio in rows for bound in ratio if bound is not None] + [1], True, left, WIDTH - 60, 0.1)
    body = "".join(f'<path class="g" d="M{axis(value):.1f} {TOP}V{height - 36}"/>' + text(axis(value), height - 20, number(value))
                   for value in axis.ticks())
    body += f'<path class="one" d="M{axis(1):.1f} {TOP}V{height - 36}"/>'
    for place, (label, (middle, low, high)) in enumerate(rows):
        y = TOP + LINE * (place + 0.5)
        style = style_of((middle, low, high))
        body += text(left - 10, y + 4, label if len(label) < 44 else label[:42] + "…", "end")
        body += f"<g><title>{escape(label)}: {interval((middle, low, high))}</title>"
        body += "" if low is None else f'<path class="l c{style}" d="M{axis(low):.1f} {y:.1f}H{axis(high):.1f}"/>'
        body += marker(MARKERS[style], axis(middle), y, style) + "</g>"
        body += text(WIDTH - 4, y + 4, times(middle), "end")
    body += text((left + WIDTH) / 2, height - 4, meaning)
    description = "; ".join(f"{label} {interval(ratio)}" if ratio[1] is None else
                            f"{label} {ratio[0]:.2f}, from {ratio[1]:.2f} to {ratio[2]:.2f}" for label, ratio in rows)
    return figure(identity, title, description, body, height)


def overview(identity, title, groups, meaning):
    """Many rows in one picture. groups: [(label, what stands beside the label, [(row, (middle, low, high))])]; the rows of a
    group stand in the order of their ratios, a thin line each."""
    groups = [(label, note, sorted(rows, key=lambda row: -row[1][0])) for label, note, rows in groups if rows]
    height = TOP + sum(LINE + THIN * len(rows) + LINE for *_, rows in groups) + 40
    axis = Axis([bound for *_, rows in groups for _, ratio in rows for bound in ratio if bound is not None] + [1], True, LEFT,
                WIDTH - RIGHT, 0.1)
    body = "".join(f'<path class="g" d="M{axis(value):.1f} {TOP}V{height - 36}"/>' + text(axis(value), height - 20, number(value))
                   for value in axis.ticks())
    body += f'<path class="one" d="M{axis(1):.1f} {TOP}V{height - 36}"/>'
    y = TOP
    for label, note, rows in groups:
        y += LINE
        body += text(LEFT, y - 4, f"{label}: {note}", "start", "group")
        for row, ratio in rows:
            style = style_of(ratio)
            body += f"<g><title>{escape(row)}: {interval(ratio)}</title>"
            body += ("" if ratio[1] is None else
                     f'<path class="l s c{style}" d="M{axis(ratio[1]):.1f} {y + 1.5:.1f}H{axis(ratio[2]):.1f}"/>')
            body += f'<circle class="m c{style}" cx="{axis(ratio[0]):.1f}" cy="{y + 1.5:.1f}" r="1.5"/></g>'
            y += THIN
        y += LINE
    body += text((LEFT + WIDTH) / 2, height - 4, meaning)
    return figure(identity, title, "; ".join(f"{label}: {note}" for label, note, _ in groups), body, height)


def percentiles(identity, title, series, x_title):
    """series: [(name, trips)]: latency over the share of round trips that took no longer."""
    shares = [(0.5, "50 %"), (0.9, "90 %"), (0.99, "99 %"), (0.999, "99.9 %"), (0.9999, "99.99 %")]
    points = []
    for name, trips in series:
        total = sum(count for _, count in trips)
        known = [(label, Pool([trips]).quantile(share) / 1e3) for share, label in shares if total * (1 - share) >= 1]
        points.append((name, known))
    return lines(identity, title, points, x_title, "us")
