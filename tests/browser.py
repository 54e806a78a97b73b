"""A headless Chromium for tests, driven over a pipe by the DevTools protocol: no driver, no package, no port."""

import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
         "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
         "--hide-scrollbars", "--remote-debugging-pipe"]
PATIENCE = 120  # seconds; the machine may be busy


def find():
    """The browser's path, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def _high(descriptor):
    """The same file under a number that is not one of the two that the browser expects."""
    copy = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return copy


class Browser:
    """One page in a browser of its own; a context manager.

    Attributes
    ----------
    events : what the browser told, [{method, params}, ...]
    """

    def __init__(self):
        self.events, self._number, self._buffer, self._session = [], 0, b"", None
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        theirs_in, self._out = map(_high, os.pipe())
        self._in, theirs_out = map(_high, os.pipe())
        command = [find(), *FLAGS, f"--user-data-dir={self._profile.name}", "about:blank"]
        self._process = subprocess.Popen(  # the protocol is spoken on the descriptors 3 and 4
            ["bash", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "-", *command],
            pass_fds=(theirs_in, theirs_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "DOM"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self._session = None
            self.call("Browser.close")
        except (OSError, EOFError):  # it is gone already
            pass
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        os.close(self._out)
        self._profile.cleanup()

    def call(self, method, **params):
        """Call a method of the protocol and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._out, data):]
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def _receive(self):
        while b"\0" not in self._buffer:
            if not select.select([self._in], [], [], PATIENCE)[0]:
                raise TimeoutError("the browser does not answer")
            data = os.read(self._in, 2**20)
            if not data:
                raise EOFError("the browser has gone")
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(message)
        if "method" in message:
            self.events.append(message)
        return message

    def open(self, path, width=1280, height=900):
        """Load a file in a window of a size."""
        self.resize(width, height)
        before = len(self.events)
        self.call("Page.navigate", url=path.as_uri())
        end = time.monotonic() + PATIENCE
        while not any(event["method"] == "Page.loadEventFired" for event in self.events[before:]):
            assert time.monotonic() < end
            self._receive()

    def resize(self, width, height=900):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def media(self, scheme="light", kind="screen"):
        """Emulate a preferred colour scheme and a medium."""
        self.call("Emulation.setEmulatedMedia", media=kind,
                  features=[{"name": "prefers-color-scheme", "value": scheme}])

    def evaluate(self, script):
        """The value of a JavaScript expression; a promise is awaited."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"]["exception"].get("description", "error in the script"))
        return found["result"].get("value")

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                      windowsVirtualKeyCode={"Tab": 9, "Enter": 13}[key], text="\r" if key == "Enter" else "")
