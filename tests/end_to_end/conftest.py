"""A real browser, driven over its debugging protocol."""

import fcntl
import json
import os
import select
import shutil
import subprocess
import time

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE = 60.0


class Browser:
    """One page in a headless Chromium, driven over a pipe, with all that it logs, asks for and pops up."""

    def __init__(self, profile):
        read_there, self._write = os.pipe()
        self._read, write_there = os.pipe()

        def as_three_and_four():  # where Chromium looks for its pipe; copied away, lest one hit the other
            ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (read_there, write_there)]
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        self._process = subprocess.Popen(
            [
                CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                "--no-first-run", "--disable-background-networking", "--disable-extensions",
                "--disable-dev-shm-usage", f"--user-data-dir={profile}", "--remote-debugging-pipe",
                "about:blank",
            ],
            close_fds=False, preexec_fn=as_three_and_four,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(read_there)
        os.close(write_there)
        self._buffer, self._number, self._session, self.events = b"", 0, {}, []
        page = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = {"sessionId": attached["sessionId"]}
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)

    def call(self, method, **parameters):
        """Call a method of the DevTools protocol."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters, **self._session}
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while (answer := self._receive()).get("id") != message["id"]:
            pass
        assert "error" not in answer, answer
        return answer["result"]

    def _receive(self):
        while b"\0" not in self._buffer:
            assert select.select([self._read], [], [], PATIENCE)[0], "The browser does not answer."
            piece = os.read(self._read, 1 << 16)
            assert piece, "The browser is gone."
            self._buffer += piece
        text, self._buffer = self._buffer.split(b"\0", 1)
        message = json.loads(text)
        if "method" in message:
            self.events.append(message)
        return message

    def open(self, address, width=1280, height=900):
        """Show a page in a window of a size, and forget what came before."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        for there in ("about:blank", address):
            self.events.clear()
            loader = self.call("Page.navigate", url=there)["loaderId"]
            while not any(
                event["method"] == "Page.lifecycleEvent"
                and (event["params"]["loaderId"], event["params"]["name"]) == (loader, "load")
                for event in self.events
            ):
                self._receive()

    def evaluate(self, script):
        """Run a script in the page and give its result."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def text(self, selector):
        """Give the text of the first element that a selector finds, folded away or not."""
        return self.evaluate(f"document.querySelector({json.dumps(selector)}).textContent")

    def shown(self, selector):
        """Give the text of the first element that a selector finds, as it is laid out."""
        return self.evaluate(f"document.querySelector({json.dumps(selector)}).innerText")

    def texts(self, selector):
        """Give the texts of all elements that a selector finds."""
        all_of = f"[...document.querySelectorAll({json.dumps(selector)})]"
        return self.evaluate(f"{all_of}.map((one) => one.textContent)")

    def count(self, selector):
        """Count the elements that a selector finds."""
        return self.evaluate(f"document.querySelectorAll({json.dumps(selector)}).length")

    def click(self, selector):
        """Click the first element that a selector finds."""
        self.evaluate(f"document.querySelector({json.dumps(selector)}).click()")

    def check_fit(self, address, width, scheme):
        """Open a page in a colour scheme, on a screen of a width that it must not exceed."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=features)
        self.open(address, width=width)
        assert self.evaluate("document.documentElement.scrollWidth") <= width
        dark = self.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(246, 246, 243)"
        assert dark == (scheme == "dark")
        self.call("Emulation.setEmulatedMedia", features=[])

    def until(self, script):
        """Run a script again and again until its result is something, and give that."""
        end = time.monotonic() + PATIENCE
        while not (value := self.evaluate(script)):
            assert time.monotonic() < end, f"The page never came to: {script}"
            time.sleep(0.1)
        return value

    def hover(self, x, y):
        """Move the mouse to a place, as a hand does."""
        for there in (x - 3, x):
            self.call("Input.dispatchMouseEvent", type="mouseMoved", x=there, y=y)

    def press(self, key, code):
        """Press and release a key, as a hand does."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def troubles(self):
        """List dialogs, errors, violated policies, and requests for anything but the page itself."""
        self.evaluate("new Promise((done) => setTimeout(done, 200))")
        found, documents = [], []
        for event in self.events:
            method, about = event["method"], event["params"]
            complaint = about.get("type") in ("error", "warning", "assert")
            if (
                method in ("Page.javascriptDialogOpening", "Runtime.exceptionThrown")
                or (method == "Runtime.consoleAPICalled" and complaint)
            ):  # fmt: skip
                found.append(about)
            elif method == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
                found.append(about["entry"]["text"])
            elif method == "Network.requestWillBeSent":
                (documents if about["type"] == "Document" else found).append(about["request"]["url"])
        return found + documents[1:]

    def close(self):
        """End the browser."""
        self._session = {}
        self.call("Browser.close")
        self._process.wait(timeout=PATIENCE)
        os.close(self._read)
        os.close(self._write)


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed")
    one = Browser(tmp_path_factory.mktemp("profile"))
    yield one
    one.close()
