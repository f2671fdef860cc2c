"""Numbers and signs as people read them, the same in every terminal, notebook, page and plot.

Gaps and errors are shown in points (hundredths of a probability), rates in percent.
"""

from __future__ import annotations

MINUS = "\N{MINUS SIGN}"
#: Shown for a number that is not known.
UNKNOWN = "–"
#: p-values below this are not written out.
_SMALLEST_P = 0.001


def decimals(value: float, digits: int) -> str:
    """Write a number with a fixed number of decimals and a real minus sign.

    >>> decimals(-0.25, 2), decimals(-0.00001, 4), decimals(float("nan"), 1)
    ('−0.25', '0.0000', '–')
    """
    if value != value:
        return UNKNOWN
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if not float(text) else text.replace("-", MINUS)


def with_sign(text: str) -> str:
    """Put a plus sign before a written number that is above zero.

    >>> with_sign("6.8"), with_sign("0.0"), with_sign("−1.0")
    ('+6.8', '0.0', '−1.0')
    """
    return text if text == UNKNOWN or text.startswith(MINUS) or not float(text) else f"+{text}"


def points(value: float, digits: int = 1) -> str:
    """Write a difference of probabilities in points.

    >>> points(0.0683), points(-0.2), points(-0.0001), points(0.0044, 2)
    ('6.8', '−20.0', '0.0', '0.44')
    """
    return decimals(100 * value, digits)


def signed(value: float, digits: int = 1) -> str:
    """Write a difference of probabilities in points, with its sign.

    >>> signed(0.0683), signed(-0.00001)
    ('+6.8', '0.0')
    """
    return with_sign(points(value, digits))


def difference(says: float, happens: float, digits: int = 1) -> float:
    """Return says − happens as readers see it: the difference of the rounded percentages.

    >>> round(difference(0.41649, 0.26551), 4)
    0.15
    """
    return round(round(100 * says, digits) - round(100 * happens, digits), digits) / 100


def interval(low: float, high: float, digits: int = 1) -> str:
    """Write an interval in points.

    >>> interval(-0.012, 0.03)
    '−1.2 to 3.0'
    """
    return f"{points(low, digits)} to {points(high, digits)}"


def points_with_interval(value: float, low: float, high: float) -> str:
    """Write points with their interval, as short as a title needs it.

    >>> points_with_interval(0.206, 0.2, 0.213)
    '20.6 points (20.0–21.3)'
    """
    return f"{points(value)} points ({points(low)}–{points(high)})"


def percent(value: float, digits: int = 1) -> str:
    """Write a rate or a share; rates below 10% need two digits.

    >>> percent(0.153), percent(-0.00001), percent(float("nan")), percent(0.0045, 2)
    ('15.3%', '0.0%', '–', '0.45%')
    """
    text = decimals(100 * value, digits)
    return text if text == UNKNOWN else f"{text}%"


def level_text(level: float) -> str:
    """Write the level of intervals and tests.

    >>> level_text(0.95), level_text(0.999)
    ('95%', '99.9%')
    """
    return f"{100 * level:g}%"


def p_text(p: float) -> str:
    """Write a p-value.

    >>> p_text(0.00002), p_text(0.04)
    ('<0.001', '0.040')
    """
    return f"<{_SMALLEST_P}" if p < _SMALLEST_P else f"{p:.3f}"


def p_equation(p: float) -> str:
    """Write a p-value with its name.

    >>> p_equation(0.0002), p_equation(0.25)
    ('p<0.001', 'p=0.250')
    """
    return f"p{p_text(p)}" if p < _SMALLEST_P else f"p={p_text(p)}"


def count(n: int, noun: str = "") -> str:
    """Write a number of things.

    >>> count(16281, "row"), count(1, "row")
    ('16,281 rows', '1 row')
    """
    return f"{n:,}" if not noun else f"{n:,} {noun}{'' if n == 1 else 's'}"


def limit_text(value: float) -> str:
    """Write a limit in points, with as many decimals as it needs, at most two digits.

    >>> limit_text(0.02), limit_text(0.0025), limit_text(0.00178)
    ('2', '0.25', '0.18')
    """
    return f"{100 * value:.2g}" if value < 0.1 else f"{100 * value:.4g}"


def share_text(value: float) -> str:
    """Write a share of the rows without decimals, unless it is small.

    >>> share_text(0.456), share_text(0.0049), share_text(0.00001)
    ('46%', '0.5%', 'under 0.1%')
    """
    if value < 0.0005:
        return "under 0.1%"
    return f"{100 * value:.0f}%" if value >= 0.0095 else f"{100 * value:.1f}%"


def ratio_text(events: float, expected: float) -> str:
    """Write observed over expected events, so that a small ratio does not look like none.

    >>> ratio_text(133, 82), ratio_text(133, 4297), ratio_text(0, 5), ratio_text(3, 0)
    ('1.6', '0.03', '0.0', '–')
    """
    ratio = events / expected if expected else float("nan")
    return decimals(ratio, 1 if ratio >= 0.1 or not ratio else 2)


def short_number(value: float) -> str:
    """Write a value of a variable with four digits, or as a whole number from 10,000 on.

    >>> short_number(0.123456), short_number(48842.7), short_number(-3.0)
    ('0.1235', '48,843', '−3')
    """
    return number_text(float(f"{value:.4g}") if abs(value) < 1e4 else round(value))


def near_number(value: float, width: float) -> str:
    """Write the end of a bin with four digits, or with as many as its width needs.

    >>> near_number(45.01234, 0.02), near_number(45.01234, 5.0), near_number(12_345.678, 0.5)
    ('45.012', '45.01', '12,345.68')
    """
    from varcal._text.edges import show_number  # noqa: PLC0415  numpy loads when first needed

    short = float(f"{value:.4g}") if abs(value) < 1e4 else round(value)
    if abs(short - value) <= width / 50:
        return short_number(value)
    digits = next(
        (k for k in range(5, 17) if abs(float(f"{value:.{k}g}") - value) <= width / 50), 16
    )
    text = show_number(value, digits)
    whole, dot, rest = text.partition(".")
    if abs(value) >= 1e4 and whole.lstrip("-").isdigit():
        text = f"{int(whole):,}{dot}{rest}"
    return text.replace("-", MINUS) if value < 0 else text


def number_text(value: float) -> str:
    """Write a value of a variable, with commas from 10,000 on (2008 may be a year).

    >>> number_text(2008.0), number_text(-12_000.0), number_text(0.25), number_text(3e9)
    ('2008', '−12,000', '0.25', '3e+09')
    """
    from varcal._text.edges import show_number  # noqa: PLC0415  numpy loads when first needed

    if abs(value) >= 1e9:
        text = f"{value:.3g}"
    else:
        text = f"{value:,.0f}" if abs(value) >= 1e4 else show_number(float(f"{value:.6g}"))
    return text.replace("-", MINUS) if value < 0 else text
