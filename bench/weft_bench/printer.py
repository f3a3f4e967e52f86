# SPDX-License-Identifier: MIT
"""Every number as text, with three digits and its unit, and every table of text."""

from weft_bench import stats

ABSENT = "-"
PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""))
TIMES = ((1, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
ROUNDED_UP = 0.9995  # so much of a unit is already one of it, with three digits


def scaled(value, units):
    """(digits, unit): the value in the largest of `units`, [(size, unit)], that it fills."""
    size, unit = next((entry for entry in units if abs(value) >= entry[0] * ROUNDED_UP), units[-1])
    return f"{value / size:.3g}", unit


def number(value):
    """
    >>> number(1234567), number(0.00123), number(45.6), number(0), number(999.9), number(None)
    ('1.23M', '0.00123', '45.6', '0', '1k', '-')
    """
    return ABSENT if value is None else "".join(scaled(value, PREFIXES))


def rate(per_second):
    """
    >>> rate(3_456_789), rate(45_600), rate(12)
    ('3.46 M/s', '45.6 k/s', '12 /s')
    """
    digits, prefix = scaled(per_second, PREFIXES)
    return f"{digits} {prefix}/s"


def time(seconds):
    """
    >>> time(3.456e-9), time(999.6e-9), time(0.0000123), time(0.0886), time(2), time(0), time(None)
    ('3.46 ns', '1 us', '12.3 us', '88.6 ms', '2 s', '0 ns', '-')
    """
    return ABSENT if seconds is None else " ".join(scaled(seconds, TIMES))


def whole(value):
    """
    >>> whole(4321.4)
    '4321'
    """
    return f"{value:.0f}"


def size(count):
    """
    >>> size(4321.4)
    '4321 B'
    """
    return f"{whole(count)} B"


def share(value, digits=0):
    """
    >>> share(0.126), share(0.126, 1)
    ('13%', '12.6%')
    """
    return f"{value:.{digits}%}"


def interval(ratio, unit="", digits=2):
    """
    >>> interval([4.0, 3.5, 12.123]), interval([4.0, 3.5, 12.123], "x"), interval([4.0, 3.5, 12.123], digits=1)
    ('4.00 [3.50, 12.12]', '4.00x [3.50, 12.12]', '4.0 [3.5, 12.1]')
    >>> interval([4.0, None, None], "x")
    '4.00x [unknown]'
    """
    if ratio is None:
        return ABSENT
    if ratio[1] is None:
        return f"{ratio[0]:.{digits}f}{unit} [unknown]"
    middle, low, high = (f"{value:.{digits}f}" for value in ratio)
    return f"{middle}{unit} [{low}, {high}]"


def times(value):
    """
    >>> times(2.7)
    '2.70x'
    """
    return f"{value:.2f}x"


def verdict(ratio):
    """
    >>> verdict([1.3, 1.2, 1.4]), verdict([0.6, 0.5, 0.7]), verdict(None)
    ('faster', 'SLOWER', '')
    """
    return "" if ratio is None else stats.verdict(ratio).replace("slower", "SLOWER")


def met(bar):
    """Whether a bar is met; neither where a void row or an unknown interval leaves that open.

    >>> [met({"met": value}) for value in (True, False, None)]
    ['met', 'MISSED', 'unknown']
    """
    return {True: "met", False: "MISSED", None: "unknown"}[bar["met"]]


def bar_value(bar):
    """What was measured of a bar, as text.

    >>> bar_value({"measure": "bytes", "value": [812.0, 800.0, 820.0]}), bar_value({"measure": "speed", "value": [1.5, 1.25, 2]})
    ('812', '1.50 [1.25, 2.00]')
    """
    return whole(bar["value"][0]) if bar["measure"] in ("bytes", "rate", "ns") else interval(bar["value"])


def bars_met(bars, word=" met"):
    """
    >>> bars_met([{"met": True}, {"met": False}]), bars_met([{"met": True}, {"met": None}], "")
    ('1 of 2 met', '1 of 2, 1 unknown')
    """
    said = [met(bar) for bar in bars]
    unknown = said.count("unknown")
    return f"{said.count('met')} of {len(said)}{word}" + (f", {unknown} unknown" if unknown else "")


def count(amount, noun):
    """
    >>> count(1, "row"), count(2, "row"), count(0, "cell")
    ('1 row', '2 rows', '0 cells')
    """
    return f"{amount} {noun}" + ("" if amount == 1 else "s")


CONTROLS = {"memcpy_64_ns": ("memcpy 64 B", 1e-9), "getppid_ns": ("getppid", 1e-9),
            "ping_pong_ns": ("cache line ping-pong", 1e-9), "futex_us": ("futex round trip", 1e-6)}


def moved_controls(moved):
    """The controls of stats.moved_controls as text.

    >>> moved_controls({"futex_us": (1.85, 63.0), "getppid_ns": (80.0, 160.0)})
    'the control futex round trip moved 34.05x, between 1.85 us and 63 us; the control getppid moved 2.00x, between 80 ns and 160 ns'
    """
    def text(name, low, high):
        title, unit = CONTROLS[name]
        return f"the control {title} moved {times(high / low)}, between {time(low * unit)} and {time(high * unit)}"
    return "; ".join(text(name, *bounds) for name, bounds in moved.items())


UNITS = {"s": time, "/s": rate, "B": size, "x": times}


def quantity(value, unit):
    """
    >>> quantity(4667387, "/s"), quantity(12.34e-9, "s"), quantity(2.7, "x"), quantity(812, "MB/s"), quantity(None, "s")
    ('4.67 M/s', '12.3 ns', '2.70x', '812 MB/s', '-')
    """
    if value is None:
        return ABSENT
    return UNITS[unit](value) if unit in UNITS else f"{value:.3g} {unit}"


# Rows whose cost is usually stated as a time. All others are shown as messages per second.
LATENCIES = ("round_trip", "one_thread", "service", "broker", "burst", "connect_storm")
ONE_AT_A_TIME = ("/x1", "/x1/load50", "/x1/load80")  # echo: the server's round trips


def cost(result, column):
    """The cost of a column of a result, in the unit that a reader expects of its row.

    >>> cost({"unit": "s", "row": "pair/tcp/64", "columns": {"weft": 1e-7}}, "weft")
    '10 M/s'
    >>> cost({"unit": "s", "row": "echo/64/x1", "columns": {"weft": 2e-5}}, "weft")
    '20 us'
    >>> cost({"unit": "ns", "row": "Result_Value", "columns": {"weft": 2.0}}, "rival")
    '-'
    """
    value, row = result["columns"].get(column), result["row"]
    if value is None:
        return ABSENT
    if result["unit"] != "s":
        return time(value * 1e-9) if result["unit"] == "ns" else size(value)
    if row.startswith(LATENCIES) or (row.startswith("echo") and row.endswith(ONE_AT_A_TIME)):
        return time(value)
    return rate(1 / max(value, 1e-12))


def text_table(lines, left=(0,)):
    """Aligned text. The columns in `left` are aligned to the left. A column with nothing below its head is left out.

    >>> print(text_table([["cell", "Weft", "x"], ["a/b", "12", ""]]))
    cell  Weft
    a/b     12
    """
    keep = [i for i in range(len(lines[0])) if any(line[i] for line in lines[1:])]
    widths = {i: max(len(line[i]) for line in lines) for i in keep}
    texts = []
    for line in lines:
        parts = [line[i].ljust(widths[i]) if i in left else line[i].rjust(widths[i]) for i in keep]
        texts.append("  ".join(parts).rstrip())
    return "\n".join(texts)


def markdown_table(lines):
    """
    >>> print(markdown_table([["a", "b"], ["1", "2"]]))
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    rows = ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join([rows[0], "|---" * len(lines[0]) + "|", *rows[1:]])
