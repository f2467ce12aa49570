"""What an error of torch's store or of gloo says, in a few words."""

import pytest

from commbench.engines.torch_store import first_line


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[/a/gloo/transport/tcp/pair.cc:537] Read error [127.0.0.1]:400: Connection reset by peer. This is "
            "typically caused by a remote worker.\nstack",
            "Read error [127.0.0.1]:400: Connection reset by peer",
        ),
        ("Connection closed by peer [10.0.0.1]:400", "Connection closed by peer [10.0.0.1]:400"),
        ("Socket Timeout.", "Socket Timeout"),
        ("", "RuntimeError"),
    ],
)
def test_an_error_says_its_reason_alone(text: str, said: str) -> None:
    assert first_line(RuntimeError(text)) == said
