"""Screenshots of the dashboard for its page and the README: `make pictures`, with Chromium.

A server of some example models gets mixed traffic for half a minute, which the pages show. Two runs differ in their
figures, so no test compares the files; each is smaller than 150 KB.
"""

import json
import math
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "pictures"
LARGEST = 150_000
SECONDS = 35.0
TRAFFIC: dict[str, tuple[float, dict[str, Any]]] = {
    "add_sub": (60, {"INPUT0": [1, 2, 3, 4], "INPUT1": [4, 3, 2, 1]}),
    "celsius": (25, {"celsius": [21.5]}),
    "shapes": (12, {"image": [128] * 3072}),
    "text_embedding": (18, {"text": "a river by the sea"}),
    "weather_card": (6, {"POSITION": [48.2, 16.4], "CELSIUS": 21.5}),
}
"""The requests a second of each model, and one of them as flat JSON."""


def main() -> int:
    """Draw every picture. Returns the exit status."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        print("the pictures need Chromium: apt-get install chromium", file=sys.stderr)
        return 1
    with TemporaryDirectory() as folder, serving(Path(folder)) as (http, dashboard), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1180, "height": 760}, color_scheme="light")
        page.goto(f"{dashboard}/models/add_sub")  # keeps the history of every model from here on
        viewer = browser.new_page(viewport={"width": 1180, "height": 640}, color_scheme="dark")
        viewer.goto(dashboard)
        with traffic(http):
            time.sleep(SECONDS)
            take_all(page, viewer, dashboard, Path(folder))
        browser.close()
    return 0


def take_all(page: Page, viewer: Page, dashboard: str, folder: Path) -> None:
    """Every picture, of pages that have the history of the traffic."""
    take(page, "dashboard-model")
    take(viewer, "dashboard-dark")
    for name, path in (("models", "/"), ("slow", "/slow")):
        page.goto(f"{dashboard}{path}")
        page.wait_for_selector("[data-live]")
        take(page, f"dashboard-{name}", height=640)
    page.goto(f"{dashboard}/ensembles")
    take(page, "dashboard-ensembles", height=520)
    try_shapes(page, dashboard, folder)


def take(page: Page, name: str, height: int = 0) -> None:
    """Write a screenshot of what the page shows."""
    if height:
        page.set_viewport_size({"width": page.viewport_size["width"], "height": height})
    path = PICTURES / f"{name}.png"
    page.screenshot(path=path, animations="disabled")
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes")
    if path.stat().st_size > LARGEST:
        raise SystemExit(f"{path} has more than {LARGEST} bytes; take less of the page")


def try_shapes(page: Page, dashboard: str, folder: Path) -> None:
    """The form of the model `shapes`, with a drawing of its own kind."""
    page.goto(f"{dashboard}/models/shapes")
    file = folder / "drawing.ppm"
    page.get_by_label("as", exact=True).select_option("image")
    page.evaluate(_DRAWING)
    file.with_suffix(".png").write_bytes(bytes(page.evaluate(_PNG)))
    page.get_by_label("File for image").set_input_files(file.with_suffix(".png"))
    page.get_by_role("button", name="Send").click()
    page.wait_for_selector("#took")
    page.get_by_role("button", name="As code").click()
    page.get_by_role("tab", name="Python").click()
    page.locator("#try").evaluate("heading => scrollTo(0, heading.getBoundingClientRect().top + scrollY - 10)")
    page.get_by_role("button", name="As code").evaluate("button => button.blur()")
    take(page, "dashboard-try", height=760)


_DRAWING = """() => {
  const canvas = window.drawing = document.createElement('canvas');
  canvas.width = canvas.height = 32;
  const context = canvas.getContext('2d');
  context.fillStyle = '#232323'; context.fillRect(0, 0, 32, 32);
  context.fillStyle = '#cd2828'; context.beginPath(); context.arc(15, 17, 9, 0, 7); context.fill();
}"""
_PNG = """async () => {
  const blob = await new Promise((take) => window.drawing.toBlob(take));
  return Array.from(new Uint8Array(await blob.arrayBuffer()));
}"""


@contextmanager
def serving(folder: Path) -> Iterator[tuple[str, str]]:
    """Serve the models of the traffic, and those that they need: the URLs of HTTP and of the dashboard."""
    names = [*TRAFFIC, "nearest_city", "journey", "typewriter", "accumulator"]
    for name in names:
        shutil.copytree(ROOT / "examples" / "models" / name, folder / "models" / name)
    ports = ["--http-port=0", "--grpc-port=0", "--metrics-port=0", "--dashboard-port=0", "--http-address=127.0.0.1"]
    command = [str(Path(sys.executable).parent / "naiad"), "serve", str(folder / "models"), *ports]
    log = folder / "log"
    with log.open("w") as output:
        process = subprocess.Popen(command, stderr=output, stdout=output)
    try:
        http = url_of(process, log, "http")
        wait_until_ready(http)
        yield http, url_of(process, log, "dashboard")
    finally:
        process.terminate()
        process.wait(30)


def url_of(process: subprocess.Popen[bytes], log: Path, frontend: str) -> str:
    """Where a frontend listens, as the log says."""
    for _ in range(600):
        hit = re.search(rf"\b{frontend} (http://[\d.]+:\d+)", log.read_text())
        if hit:
            return hit[1]
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise SystemExit(f"the server did not start:\n{log.read_text()}")


def wait_until_ready(http: str) -> None:
    """Wait until all models are loaded; the server listens before that."""
    for _ in range(600):
        try:
            urllib.request.urlopen(f"{http}/v2/health/ready").close()
            return
        except HTTPError:
            time.sleep(0.1)
    raise SystemExit("the server is not ready")


@contextmanager
def traffic(http: str) -> Iterator[None]:
    """Send requests to each model, in waves, while the block runs; four clients each, so that there are batches."""
    over = threading.Event()
    threads = [
        threading.Thread(target=send_to, args=(f"{http}/v2/models/{name}/generate", rate / 4, body, over))
        for name, (rate, body) in TRAFFIC.items()
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def send_to(url: str, rate: float, body: dict[str, Any], over: threading.Event) -> None:
    """Requests of one model at a rate that rises and falls."""
    phase = len(url) % 6
    pause = 0.0
    while not over.wait(pause):
        with suppress(HTTPError):  # a request may wait too long where the machine is busy
            urllib.request.urlopen(Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})).read()
        pause = (1 - 0.6 * math.sin(time.monotonic() / 4 + phase)) / rate


if __name__ == "__main__":
    sys.exit(main())
