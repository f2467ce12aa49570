"""commbench.units: sizes, durations, rates and fractions, from text and to text."""

from time import monotonic

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from commbench.errors import UsageError
from commbench.units import (
    format_nbytes,
    format_seconds,
    parse_flops,
    parse_fraction,
    parse_nbytes,
    parse_rate,
    parse_seconds,
)

PARSERS = (parse_nbytes, parse_seconds, parse_rate, parse_fraction, parse_flops)


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [
        ("1", 1),
        ("512", 512),
        ("7B", 7),
        ("1K", 1024),
        ("64KB", 65_536),
        ("64KiB", 65_536),
        ("64kib", 65_536),
        ("3m", 3_145_728),
        ("2GiB", 2_147_483_648),
        ("1T", 1_099_511_627_776),
        ("1024T", 1_125_899_906_842_624),
        ("1.5M", 1_572_864),
        ("0.3M", 314_572),
        ("0.7G", 751_619_276),
        (".5K", 512),
        ("1.9", 1),
        ("0.99999999999999999999K", 1023),  # a float makes 1024 of it
        ("+4K", 4096),
        ("  3 k ", 3072),
        ("0001K", 1024),
    ],
)
def test_reads_a_size(text: str, nbytes: int) -> None:
    assert parse_nbytes(text) == nbytes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0", "'0' is 0 bytes"),
        ("0.5", "'0.5' is 0 bytes"),
        ("-1K", "'-1K' is -1024 bytes"),
        ("1025T", "'1025T' is beyond 1024 TiB"),
        ("9999999999999999", "is beyond 1024 TiB"),
        *(
            (text, "cannot read the size")
            for text in ("", " ", "1E", "K", "1KM", "1 2", "1,5M", "1_000", "0x10", "1e3", "nan", "inf", "--1", "1.")
        ),
        ("٣K", "cannot read the size"),
        ("²", "cannot read the size"),
        ("1\u212a", "cannot read the size"),  # the Kelvin sign, which is K to a careless pattern
    ],
)
def test_refuses_a_bad_size(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_nbytes(text)


@pytest.mark.parametrize("parse", PARSERS)
@pytest.mark.parametrize(
    "text",
    ["9" * 5_000, "0" * 5_000 + "1", "9" * 100_000, "0." + "3" * 100_000, "1" + " " * 100_000 + "x y", " " * 100_000],
    ids=lambda text: f"{text[:3]}…{len(text)}",
)
def test_refuses_a_very_long_text_at_once(parse, text: str) -> None:
    start = monotonic()
    with pytest.raises(UsageError):
        parse(text)
    assert monotonic() - start < 1


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("12", 12),
        ("30s", 30),
        ("2m", 120),
        ("3min", 180),
        ("1.5h", 5400),
        ("500ms", 0.5),
        ("10us", 1e-5),
        ("10µs", 1e-5),
        ("7ns", 7e-9),
        (" 4 s ", 4),
        ("1e3", 1000),
        ("2e-3s", 0.002),
        (".5", 0.5),
    ],
)
def test_reads_a_duration(text: str, seconds: float) -> None:
    assert parse_seconds(text) == pytest.approx(seconds, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "bytes_per_second"),
    [
        ("3B/s", 3),
        ("2KB/s", 2e3),
        ("5MB/s", 5e6),
        ("25GB/s", 25e9),
        ("1.5TB/s", 1.5e12),
        ("8kbit", 1e3),
        ("400mbit", 50e6),
        ("100gbit", 12.5e9),
        ("400Mbit/s", 50e6),
        ("400mbit/s", 50e6),
        ("8Kbit/s", 1e3),
        ("1.6Tbit/s", 200e9),
    ],
)
def test_reads_a_rate(text: str, bytes_per_second: float) -> None:
    assert parse_rate(text) == pytest.approx(bytes_per_second, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "fraction"),
    [("5%", 0.05), ("0.05", 0.05), ("0", 0), ("0%", 0), (" 12.5 % ", 0.125), (".25", 0.25), ("99%", 0.99)],
)
def test_reads_a_fraction(text: str, fraction: float) -> None:
    assert parse_fraction(text) == pytest.approx(fraction, rel=1e-12)


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        *((parse_seconds, text, "above zero and finite") for text in ("0", "0s", "1e999", "1e-999s")),
        *(
            (parse_seconds, text, "cannot read the duration")
            for text in ("", "s", "-1s", "1d", "2M", "1e", "nan", "inf", "1 2s", "٣s")
        ),
        *((parse_rate, text, "above zero and finite") for text in ("0GB/s", "1e999GB/s")),
        *(
            (parse_rate, text, "cannot read the rate")
            for text in ("", "25", "-1GB/s", "25GiB/s", "25gb/s", "nanGB/s", "infGB/s", "٣mbit")
        ),
        *(
            (parse_fraction, text, "as a fraction")
            for text in ("", "1", "100%", "-5%", "5%%", "1e-3", "nan", "inf", "%", "٥%")
        ),
    ],
)
def test_refuses_a_bad_duration_rate_or_fraction(parse, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse(text)


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [
        (0, "0 B"),
        (1.5, "1.5 B"),
        (1000, "1000 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (123_456, "120.6 KiB"),
        (1 << 20, "1 MiB"),
        (5 << 29, "2.5 GiB"),
        (1 << 50, "1024 TiB"),
    ],
)
def test_writes_a_size(nbytes: float, text: str) -> None:
    assert format_nbytes(nbytes) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.00 ns"),
        (123e-9, "123 ns"),
        (12.3e-6, "12.3 us"),
        (4.56e-3, "4.56 ms"),
        (-0.5, "-500 ms"),
        (7.89, "7.89 s"),
        (61, "61.0 s"),
        (3600, "3600 s"),
    ],
)
def test_writes_a_duration(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


@given(st.integers(1, 1 << 50))
def test_plain_bytes_are_read_exactly(nbytes: int) -> None:
    assert parse_nbytes(f"{nbytes}") == nbytes


@given(st.text() | st.text("0123456789.eE+-KMGTiB/smunhbit% "))
@example("1e99999999999s")
def test_any_text_is_read_or_refused(text: str) -> None:
    for parse in PARSERS:
        try:
            value = parse(text)
        except UsageError:
            continue
        assert 0 <= value < float("inf")


@pytest.mark.parametrize(
    ("text", "flops"), [("400T", 4e14), ("989.5 TFLOP/s", 9.895e14), ("1.2PFLOPS", 1.2e15), ("500G", 5e11)]
)
def test_flops_have_prefixes_of_1000(text: str, flops: float) -> None:
    assert parse_flops(text) == pytest.approx(flops, rel=1e-12)


@pytest.mark.parametrize("text", ["400", "400TB/s", "0T", "T", "-1T"])
def test_a_speed_that_does_not_read_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_flops(text)
