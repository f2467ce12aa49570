"""A headless Chromium that tells everything a page does: the DevTools protocol over a pipe, no port and no driver."""

import base64
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import Any

_FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions"),
    *("--hide-scrollbars", "--no-default-browser-check", "--remote-debugging-pipe"),
)


class Page:
    """One page. `events` holds what it reported, in order, each as {"method": …, "params": …}."""

    def __init__(self, commands: int, answers: BufferedReader) -> None:
        self._commands, self._answers = commands, answers
        self._number, self._buffer = 0, b""
        self.events: list[dict[str, Any]] = []
        self._session: str | None = None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of one command. Raises RuntimeError for an error, EOFError if the browser has ended."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def open(self, path: Path, width: int = 1280, dark: bool = False) -> None:
        """Load a file and wait until it has loaded."""
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.send("Emulation.setEmulatedMedia", features=scheme)
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.events.clear()
        self.send("Page.navigate", url=path.resolve().as_uri())
        while not self.reported("Page.loadEventFired"):
            self.events.append(self._read())

    def reported(self, *methods: str) -> list[dict[str, Any]]:
        """The parameters of every event of these kinds since the page was opened."""
        return [event["params"] for event in self.events if event.get("method") in methods]

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression, asked by the debugger: the page itself needs no script."""
        return self.send("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def screenshot(self) -> bytes:
        """The whole page as PNG."""
        shot = self.send("Page.captureScreenshot", captureBeyondViewport=True, format="png")
        return base64.b64decode(shot["data"])

    def pdf(self) -> bytes:
        """The page as it would be printed."""
        printed = self.send("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
        return base64.b64decode(printed["data"])

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            chunk = self._answers.read1(1 << 16)
            if not chunk:
                raise EOFError("the browser has ended")
            self._buffer += chunk
        message, self._buffer = self._buffer.split(b"\0", 1)
        answer: dict[str, Any] = json.loads(message)
        return answer


@contextmanager
def open_browser(program: str, profile: Path) -> Iterator[Page]:
    """A page of a fresh browser, which has ended when the block is left."""
    to_browser, commands = os.pipe()
    answers, from_browser = os.pipe()
    # It reads commands from descriptor 3 and writes answers to 4.
    shell = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
    arguments = [program, *_FLAGS, f"--user-data-dir={profile}"]
    process = subprocess.Popen(
        ["bash", "-c", shell, "bash", *arguments],
        pass_fds=(to_browser, from_browser),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_browser)
    os.close(from_browser)
    try:
        with os.fdopen(answers, "rb") as told:
            yield Page(commands, told)
    finally:
        with suppress(OSError):
            os.close(commands)  # the browser ends when its pipe does
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
