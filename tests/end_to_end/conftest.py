"""A real browser, driven over its debugging protocol."""

import asyncio
import json
import shutil
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Page:
    """One page: what it asks the network for, what it logs, and a mouse."""

    def __init__(self, socket):
        self._socket = socket
        self._number = 0
        self.requests, self.errors, self.dialogs = [], [], []

    async def call(self, method, **parameters):
        self._number += 1
        number = self._number
        await self._socket.write_message(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(await asyncio.wait_for(self._socket.read_message(), 30))
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]
            await self._note(message)

    async def _note(self, message):
        about = message.get("params", {})
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
        elif message.get("method") == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
            self.errors.append(about["entry"]["text"])
        elif message.get("method") == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning"):
            self.errors.append(str(about["args"]))
        elif message.get("method") == "Runtime.exceptionThrown":
            self.errors.append(str(about["exceptionDetails"]))
        elif message.get("method") == "Page.javascriptDialogOpening":
            self.dialogs.append(about["message"])
            self._number += 1
            await self._socket.write_message(
                json.dumps(
                    {"id": self._number, "method": "Page.handleJavaScriptDialog", "params": {"accept": True}}
                )
            )

    async def evaluate(self, script):
        result = await self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        return result["result"].get("value")

    async def until(self, script, seconds=30):
        end = time.monotonic() + seconds
        while not (value := await self.evaluate(script)):
            assert time.monotonic() < end, f"the page never came to: {script}"
            await asyncio.sleep(0.1)
        return value

    async def hover(self, x, y):
        await self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x - 3, y=y)
        await self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)


async def _visit(address, url, steps):
    from tornado.websocket import websocket_connect

    with urllib.request.urlopen(f"http://{address}/json/list") as answer:
        target = next(entry for entry in json.load(answer) if entry["type"] == "page")
    socket = await websocket_connect(target["webSocketDebuggerUrl"], max_message_size=1 << 26)
    page = Page(socket)
    for domain in ("Page", "Runtime", "Log", "Network"):
        await page.call(f"{domain}.enable")
    await page.call(
        "Emulation.setDeviceMetricsOverride", width=1200, height=9000, deviceScaleFactor=1, mobile=False
    )
    await page.call("Page.navigate", url=url)
    await page.until("document.readyState === 'complete'")
    await steps(page)
    await asyncio.sleep(0.3)
    await page.evaluate("1")  # whatever is still on its way
    socket.close()
    while await asyncio.wait_for(socket.read_message(), 10) is not None:  # until it is closed
        pass
    return page


@pytest.fixture
def visit():
    """Open a file in Chromium, do some steps, and give the page with all that it did."""
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed")
    pytest.importorskip("tornado")
    profile = tempfile.mkdtemp()
    with (Path(profile) / "log").open("wb") as log:
        browser = subprocess.Popen(
            [
                CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                "--no-first-run", "--disable-extensions", "--remote-debugging-port=0",
                f"--user-data-dir={profile}", "about:blank",
            ],
            stdout=log, stderr=log,
        )  # fmt: skip
    try:
        port = Path(profile) / "DevToolsActivePort"
        end = time.monotonic() + 60
        while not port.exists() or not port.read_text().strip():
            assert time.monotonic() < end, (Path(profile) / "log").read_text()
            time.sleep(0.1)
        address = f"127.0.0.1:{port.read_text().split()[0]}"
        yield lambda path, steps: asyncio.run(_visit(address, Path(path).absolute().as_uri(), steps))
    finally:
        browser.terminate()
        browser.wait(20)
        shutil.rmtree(profile, ignore_errors=True)
