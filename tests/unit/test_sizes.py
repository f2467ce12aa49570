"""commbench.plan.sizes: the size grammar, and one clear sentence for all that is not in it."""

from time import monotonic

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commbench.errors import UsageError
from commbench.plan.sizes import MAX_SIZES, parse_sizes

K, M = 1024, 1024**2


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("64K", (64 * K,)),
        ("512, 1K,1.5M", (512, K, 1_572_864)),
        ("1M,1K", (M, K)),
        ("1K:64K:x4", (K, 4 * K, 16 * K, 64 * K)),
        ("1K:63K:x4", (K, 4 * K, 16 * K)),
        ("1K:8K", (K, 2 * K, 4 * K, 8 * K)),
        ("1K:16K:+5K", (K, 6 * K, 11 * K, 16 * K)),
        ("4:15:+4", (4, 8, 12)),
        ("1:10:x1.5", (1, 2, 3, 5, 7)),  # 1, 1.5, 2.25, 3.375, 5.0625, 7.59375
        ("1000:1400:x1.1", (1000, 1100, 1210, 1331)),
        ("1K:1K", (K,)),
        ("1K:1K:+1", (K,)),
        ("1K,1K:4K,2K", (K, 2 * K, 4 * K)),
        (" 1K : 4K : x2 ", (K, 2 * K, 4 * K)),
        (f"1:{MAX_SIZES}:+1", tuple(range(1, MAX_SIZES + 1))),
    ],
)
def test_reads_sizes(text: str, sizes: tuple[int, ...]) -> None:
    assert parse_sizes(text) == sizes


def test_a_slow_factor_reaches_the_last_size() -> None:
    assert parse_sizes("1:300:x1.001")[:299] == tuple(range(1, 300))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("64K:1K", "'64K:1K' run backwards: 64 KiB is above 1 KiB; write 1K:64K"),
        ("0", "at least 1 byte"),
        ("0:1K", "at least 1 byte"),
        ("1K,-1K", "'-1K' is -1024 bytes"),
        ("9999T", "typing error"),
        ("1K:9999T", "typing error"),
        ("1K:64K:+0", "at least 1 byte"),
        ("1K:64K:+-4K", "'-4K' is -4096 bytes"),
        ("1K:64K:+", "cannot read the size ''"),
        *((f"1K:64K:{step}", f"cannot read the step {step!r}") for step in ("x1", "x0", "x0.5", "x-2", "x", "4K", "2")),
        *((f"1K:64K:{step}", f"cannot read the step {step!r}") for step in ("xnan", "xinf", "x٣", "x2e1", "x1_0", "")),
        ("1K:64K:x1.0001", "below 1.001"),
        ("1K:64K:x2:3", "FIRST:LAST:xFACTOR or FIRST:LAST:+STEP"),
        ("1K:", "cannot read the size ''"),
        (":1K", "cannot read the size ''"),
        ("", "cannot read the size ''"),
        ("1K,,2K", "cannot read the size ''"),
        ("1K;2K", "cannot read the size '1K;2K'"),
        ("1:1M:+1", "more than 4096 sizes"),
        (f"1:{MAX_SIZES + 1}:+1", "more than 4096 sizes"),
        ("1:1T:x1.001", "more than 4096 sizes"),
        (",".join(map(str, range(1, MAX_SIZES + 2))), "more than 4096 sizes"),
    ],
    ids=lambda text: text[:30],
)
def test_refuses_with_one_clear_sentence(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_sizes(text)
    said = str(caught.value)
    assert message in said
    assert said.endswith((".", "?"))
    assert "\n" not in said


@pytest.mark.parametrize(
    "text",
    ["1:2:x1e999999999", "1:2:x1e-999999999", "1:2:x" + "9" * 5_000, "1:1024T:+1", "1:1024T:x1.001", "9" * 99_999],
    ids=lambda text: text[:20],
)
def test_refuses_the_absurd_at_once(text: str) -> None:
    start = monotonic()
    with pytest.raises(UsageError):
        parse_sizes(text)
    assert monotonic() - start < 2


@given(st.text() | st.text("0123456789KMGTiB.:,x+-e ", max_size=40) | st.from_regex(r"\d+K?:\d+M:[x+]\d.?\d*"))
def test_any_text_gives_sizes_or_is_refused(text: str) -> None:
    try:
        sizes = parse_sizes(text)
    except UsageError:
        return
    assert isinstance(sizes, tuple)
    assert 0 < len(sizes) <= MAX_SIZES
    assert len(set(sizes)) == len(sizes)
    assert all(type(size) is int and 1 <= size <= 1 << 50 for size in sizes)
