"""The dashboard in a real browser: Chromium under playwright, with no error in its console and no other host."""

import asyncio
import io
import logging
import re
import shutil
import threading
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from struct import pack
from urllib.parse import urlsplit

import numpy as np
import pytest

import naiad_custom
import naiad_dashboard
import naiad_http
from naiad.errors import ModelFailedError
from naiad_testing import serve

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
expect = playwright.expect
expect.set_options(timeout=30_000)  # its own 5 s are too short on a busy machine
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: apt-get install chromium")

PLUGINS = [naiad_custom, naiad_dashboard]
EVIL = "<img src=x onerror=window.evil=1>\"'&{{7*7}}"
TOKEN = "0123456789abcdef"
REFUSABLE = re.compile(r"/(trial|snippets|actions/\w+)$")
"""What a page sends may be refused, and the browser says so in its console."""
NOTE_FIGURES = """
window.figures = new Promise((came) => {
  window.EventSource = class extends EventSource {
    constructor(url) {
      super(url);
      this.addEventListener("first", came);
    }
  };
});
"""
STREAM = """
import asyncio
from collections.abc import AsyncIterator
from naiad_custom import INT32, Array, model

@model(outputs="number")
async def stream(start: Array[INT32, 1]) -> AsyncIterator[Array[INT32, 1]]:
    yield start
    yield start + 1
    await asyncio.Event().wait()
"""


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser):
    """Open pages whose console must stay without errors, unless `faults` is True, and that ask no other host."""
    contexts, errors, hosts = [], [], set()

    def note(message):
        is_refusal = REFUSABLE.search(message.location["url"]) and "Failed to load resource" in message.text
        if message.type in ("error", "warning") and not is_refusal:
            errors.append(message.text)

    def open_(url, faults=False, **options):
        context = browser.new_context(**options)
        context.set_default_timeout(30_000)
        contexts.append(context)
        page = context.new_page()
        if not faults:
            page.on("console", note)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("request", lambda request: hosts.add(urlsplit(request.url).hostname))
        page.goto(url)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert errors == []
    assert hosts <= {"127.0.0.1", None}


@pytest.fixture
def other_origin():
    """The URL of an empty page of another origin on this machine."""

    class Empty(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Empty) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def png(width, height, colour):
    rows = b"".join(b"\0" + bytes(colour) * width for _ in range(height))

    def chunk(kind, content):
        return pack(">I", len(content)) + kind + content + pack(">I", zlib.crc32(kind + content))

    head = pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def test_a_model_is_tried_and_its_request_is_copied(server, open_page):
    page = open_page(f"{server.url}/models/m")

    page.get_by_label("Values of INPUT").fill("1.5, -2")
    page.keyboard.press("Tab")
    page.get_by_role("button", name="Send").press("Enter")
    expect(page.locator("#answer pre")).to_have_text("[ 1.5, -2. ]")
    expect(page.locator("#answer svg.timeline")).to_be_visible()
    page.get_by_role("button", name="As code").click()
    page.get_by_role("tab", name="grpcurl").click()
    expect(page.locator("#snippet")).to_contain_text("this server has no gRPC")

    page.get_by_label("Values of INPUT").fill("one")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("alert")).to_have_text("'one' of input 'INPUT' is not a value of FP32")


def test_files_become_inputs(start_server, backend, models, open_page):
    backend.write(models, "image", 'input { name: "INPUT" data_type: TYPE_UINT8 dims: [ 3, 2, 2 ] }')
    backend.answer = lambda batch: {"OUTPUT": batch.input("INPUT").ravel()[::4].astype(np.float32)}
    page = open_page(f"{start_server().url}/models/image")
    stream = io.BytesIO()
    np.save(stream, np.arange(12, dtype=np.uint8).reshape(3, 2, 2))

    page.get_by_label("as", exact=True).select_option("npy")
    page.get_by_label("File for INPUT").set_input_files(
        [{"name": "a.npy", "mimeType": "", "buffer": stream.getvalue()}]
    )
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#answer pre")).to_have_text("[0., 4., 8.]")

    page.get_by_label("as", exact=True).select_option("image")
    file = {"name": "a.png", "mimeType": "image/png", "buffer": png(8, 8, (10, 20, 30))}
    page.get_by_label("File for INPUT").set_input_files([file])
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#answer pre")).to_have_text("[10., 20., 30.]")


def test_names_inputs_outputs_and_log_lines_are_text(start_server, backend, models, open_page):
    name = EVIL.replace('"', "")
    backend.write(models, name)
    server = start_server()
    logging.getLogger("naiad.model").error(EVIL, extra={"model": name, "version": "1"})

    def fail(batch):
        raise ModelFailedError(EVIL)

    page = open_page(server.url)
    page.get_by_role("link", name=name).click()
    expect(page.locator("#log")).to_contain_text(EVIL)
    expect(page.locator("h1")).to_contain_text(name)
    backend.answer = fail
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("alert")).to_contain_text(EVIL)
    expect(page.locator("#details")).to_contain_text("Last error")
    page.goto(server.url)
    expect(page.locator("table.models tbody tr")).to_have_count(2)

    assert page.evaluate("window.evil") is None
    assert page.locator("img").count() == 0


AT_END = """(log) => log.scrollTop > 0 && log.scrollHeight - log.scrollTop - log.clientHeight < 8"""


def test_the_newest_lines_of_a_log_are_in_view_until_the_reader_scrolls(server, open_page):
    def log(text):
        for number in range(60):
            logging.getLogger("naiad.model").warning("%s %d", text, number, extra={"model": "m"})

    log("early")
    assert open_page(server.url).locator("#log").evaluate(AT_END)
    page = open_page(f"{server.url}/models/m")
    log("late")
    expect(page.locator("#log")).to_contain_text("late 59")
    assert page.locator("#log").evaluate(AT_END)

    page.locator("#log").evaluate("(log) => { log.scrollTop = 0; }")
    log("last")

    expect(page.locator("#log")).to_contain_text("last 59")
    assert page.locator("#log").evaluate("(log) => log.scrollTop") == 0


@pytest.fixture
def first_paint(server, open_page):
    """The page of the models as the server rendered it, and a function that lets the first figures come."""
    page, held = open_page("about:blank"), []
    page.add_init_script(NOTE_FIGURES)
    page.route("**/events/models", lambda route: held.append(route))
    page.goto(server.url)

    def let_figures_come():
        held[0].continue_()
        page.evaluate("window.figures.then(() => null)")

    return page, let_figures_come


@pytest.fixture
def press(first_paint):
    """Press the mouse on an element of the table of models, release it after new figures, and give back the page.

    The first figures replace what the server rendered, and a link that is gone at the release gets no click.
    """
    page, let_figures_come = first_paint

    def press_(role, name):
        page.get_by_role(role, name=name, exact=True).hover()
        page.mouse.down()
        let_figures_come()
        page.mouse.up()
        return page

    return press_


def test_a_link_keeps_the_focus_when_the_first_figures_come(first_paint):
    page, let_figures_come = first_paint
    page.get_by_role("link", name="m", exact=True).focus()

    let_figures_come()

    expect(page.locator("#models[data-live]")).to_be_visible()
    expect(page.get_by_role("link", name="m", exact=True)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("version 1")


def test_a_link_is_followed_though_new_figures_come_while_it_is_pressed(press):
    page = press("link", "m")

    expect(page.locator("#model[data-live]")).to_be_visible()


def test_figures_that_came_during_a_press_are_drawn_after_it(press):
    page = press("heading", "Models")

    expect(page.locator("#models[data-live]")).to_be_visible()


def test_200_models_are_filtered_by_keyboard_on_a_phone_in_the_dark(start_server, backend, models, open_page):
    for index in range(200):
        backend.write(models, f"model_{index:03}")
    size = {"width": 360, "height": 740}
    page = open_page(start_server().url, viewport=size, color_scheme="dark", has_touch=True)

    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.get_by_label("Filter").press_sequentially("_17")
    expect(page.locator("table.models tbody tr")).to_have_count(10)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(16, 22, 27)"
    page.get_by_role("link", name="model_170").press("Enter")
    expect(page.locator("#charts canvas").first).to_be_visible()
    page.locator("#trial button.primary").click()
    expect(page.locator("#answer svg.timeline")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.locator("#answer").evaluate("answer => answer.scrollWidth <= answer.clientWidth")


def test_the_navigation_has_one_line_on_a_phone(start_server, open_page, tmp_path):
    file = tmp_path / "token"
    file.write_text(TOKEN)
    server = start_server(**{"dashboard-token-file": str(file)})

    page = open_page(server.url, viewport={"width": 390, "height": 740})

    links = page.get_by_role("navigation").get_by_role("link")
    expect(links).to_have_text(["Models", "Ensembles", "Slowest requests", "Plugins", "Control"])
    assert len({box["y"] for box in links.evaluate_all("links => links.map(each => ({y: each.offsetTop}))")}) == 1


def test_an_open_page_finds_a_server_that_starts_again(start_server, open_page, backend, models):
    server = start_server()
    page = open_page(server.url, faults=True)
    expect(page.locator("#models[data-live]")).to_be_visible()
    start_server.stop()
    expect(page.locator("#connection")).to_have_text("connection lost, trying again")

    backend.write(models, "new")
    port = server.frontend.port
    start_server(**{"dashboard-port": port})

    expect(page.get_by_role("link", name="new")).to_be_visible()
    expect(page.locator("#connection")).to_be_empty()


def test_the_page_of_a_model_shows_when_it_is_unloaded_and_loaded_again(start_server, tmp_path, open_page):
    file = tmp_path / "token"
    file.write_text(TOKEN)
    server = start_server(**{"dashboard-token-file": str(file)})
    page = open_page(f"{server.url}/models/m/versions/1")
    expect(page.locator("#details[data-live] section").first).to_be_visible()

    for action, state in (("unload", "UNAVAILABLE"), ("load", "READY")):
        headers = {"Authorization": f"Bearer {TOKEN}", "Content_Type": "application/json", "naiad_dashboard": "1"}
        assert server.ask(f"/actions/{action}", "POST", '{"model": "m"}', **headers)[0] == 200

        expect(page.locator("#state")).to_have_text(state)
        expect(page.locator("#reason")).to_have_text("" if state == "READY" else "unloaded")
        expect(page.locator("#details section")).to_have_count(3 if state == "READY" else 0)


def test_a_page_opened_before_its_model_is_loaded_gets_its_charts_and_its_log(start_server, tmp_path, open_page):
    file = tmp_path / "token"
    file.write_text(TOKEN)
    server = start_server(**{"dashboard-token-file": str(file)})
    headers = {"Authorization": f"Bearer {TOKEN}", "Content_Type": "application/json", "naiad_dashboard": "1"}
    assert server.ask("/actions/unload", "POST", '{"model": "m"}', **headers)[0] == 200
    page = open_page(f"{server.url}/models/m/versions/1")
    expect(page.locator("#state")).to_have_text("UNAVAILABLE")

    assert server.ask("/actions/load", "POST", '{"model": "m"}', **headers)[0] == 200
    logging.getLogger("naiad.model").warning("a line of the model", extra={"model": "m"})

    expect(page.locator("#charts canvas")).to_have_count(4)
    expect(page.locator("#log")).to_contain_text("a line of the model")


def test_the_last_model_leaves_the_page_of_all(start_server, models, open_page):
    server = start_server(**{"model-control-mode": "poll", "repository-poll-secs": 0.1, "load-model": ()})
    page = open_page(server.url)
    expect(page.locator("#models[data-live] tbody tr")).to_have_count(1)

    shutil.rmtree(models / "m")

    expect(page.locator("#models tbody tr")).to_have_count(0)


def test_every_page_works_under_the_prefix_of_a_proxy(start_server, open_page):
    server = start_server(**{"dashboard-root-path": "/naiad"})
    page = open_page(f"{server.url}/naiad/")

    for name in ("Ensembles", "Slowest requests", "Plugins", "Models"):
        page.get_by_role("navigation").get_by_role("link", name=name).click()
        expect(page.locator("h1")).to_have_text(name)
        assert urlsplit(page.url).path.startswith("/naiad/")
    page.get_by_role("link", name="m", exact=True).click()
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#took")).to_contain_text("Answered after")


def test_an_action_asks_for_the_token_once(start_server, backend, tmp_path, open_page):
    file = tmp_path / "token"
    file.write_text(TOKEN)
    page = open_page(f"{start_server(**{'dashboard-token-file': str(file)}).url}/control")

    page.get_by_label("Model", exact=True).first.fill("m")
    page.get_by_role("button", name="Unload").click()
    expect(page.get_by_role("alert")).to_contain_text("needs the token")
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button", name="Use it").click()
    expect(page.locator("#done")).to_have_text("The model m takes no more requests.")
    page.get_by_role("button", name="Load", exact=True).click()
    expect(page.locator("#done")).to_have_text("The model m is loaded.")

    assert backend.events.count("load m 1") == 2


def test_a_stream_is_shown_as_it_comes_and_stopped(open_page, tmp_path):
    (tmp_path / "models" / "stream" / "1").mkdir(parents=True)
    (tmp_path / "models" / "stream" / "1" / "model.py").write_text(STREAM)
    with serve(tmp_path / "models", plugins=PLUGINS, options={"dashboard-port": 0}) as client:
        port = client.server.plugins.frontends()["dashboard"].port
        page = open_page(f"http://127.0.0.1:{port}/models/stream")

        page.get_by_label("Values of start").fill("41")
        page.get_by_role("button", name="Send").click()
        expect(page.locator("#answer pre")).to_have_text(["[41]", "[42]"])
        page.get_by_role("button", name="Stop").click()

        expect(page.get_by_role("alert")).to_have_text("stopped")
        client.wait_for(_idle)


@pytest.mark.parametrize("origin", ["", "*"])
def test_the_api_page_is_read_and_other_pages_call_the_api_with_the_option_alone(
    start_server, backend, open_page, other_origin, origin
):
    server = start_server(naiad_http, **{"http-port": 0, "http-allow-origin": origin})
    url = f"http://127.0.0.1:{server.client.server.plugins.frontends()['http'].port}"

    page = open_page(url)
    page.get_by_role("link", name=f"{server.url}/").click()
    expect(page.locator("h1")).to_have_text("Models")
    page.goto(f"{url}/docs")
    page.get_by_role("link", name="m", exact=True).click()
    page.get_by_text("/v2/models/m/infer", exact=False).first.click()
    expect(page.get_by_text("infer_m", exact=True)).to_be_visible()

    elsewhere = open_page(other_origin, faults=True)
    body = '{"inputs": [{"name": "INPUT", "datatype": "FP32", "shape": [1], "data": [2]}]}'
    call = """async ([url, body]) => {
      const headers = { "Content-Type": "application/json" };
      return await (await fetch(url, { method: "POST", body, headers })).json();
    }"""
    if origin:
        assert elsewhere.evaluate(call, [f"{url}/v2/models/m/infer", body])["outputs"][0]["data"] == [2]
    else:
        with pytest.raises(playwright.Error, match="Failed to fetch"):
            elsewhere.evaluate(call, [f"{url}/v2/models/m/infer", body])
        assert backend.batches == []


async def _idle(server):
    async with asyncio.timeout(10):
        while next(server.version_reports()).outstanding:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
