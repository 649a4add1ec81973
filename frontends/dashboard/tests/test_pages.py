"""The pages as a browser without JavaScript gets them."""

import logging
import re
import socket
from pathlib import Path

import numpy as np
import pytest

from naiad import hookimpl
from naiad.errors import UnavailableError
from naiad_dashboard.access import CONTENT_SECURITY_POLICY
from naiad_dashboard.options import OPTIONS, host_names, prefix
from naiad_kit.metrics import MODEL_PROCESS_MEMORY, MetricFamily, Sample
from naiad_testing.services import FakeService

EVIL = "<script>alert(1)</script>\"'&"


def text_of(page):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


def test_models_have_their_states_and_figures(server):
    server.client.infer(INPUT=np.ones(2, np.float32))

    status, headers, page = server.ask()

    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert '<a href="/models/m/versions/1">m</a>' in page
    assert "READY" in text_of(page)


@pytest.mark.parametrize("path", ["/", "/models/m", "/ensembles", "/slow", "/plugins", "/static/models.js", "/nothing"])
def test_every_answer_has_the_security_headers(server, path):
    _, headers, page = server.ask(path)

    assert headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] in ("no-store", "no-cache")
    assert not re.search(r'<script>|<style|\sstyle="|\son\w+="', page)


def test_a_models_page_has_its_tensors_configuration_and_instances(server):
    _, _, page = server.ask("/models/m")

    text = text_of(page)
    assert "INPUT" in text
    assert "m_0" in text
    assert re.search(r'class="completed">name: &#34;m&#34;|name: &#34;m&#34;', page)


class ProcessMemory(FakeService):
    """Says what the processes of the model `m` hold, as the service of isolated models does; `instance` is whose."""

    name = "process-memory"

    def __init__(self, instance):
        super().__init__()
        labels = (("model", "m"), ("version", "1"), *instance)
        other = (("instance", "m_0"), ("model", "other"), ("version", "1"))
        self._samples = [Sample(labels, 43_000_000), Sample(other, 77_000_000)]

    def metrics(self):
        return [MetricFamily(MODEL_PROCESS_MEMORY, "", "gauge", self._samples)]


def test_an_instance_of_an_isolated_model_has_the_memory_of_its_process(start_server):
    text = text_of(start_server(ProcessMemory([("instance", "m_0")])).ask("/models/m")[2])

    assert re.search(r"Executes for Memory m_0 READY \S+ 41\.0 MiB", text)
    assert "73.4" not in text  # MiB of the other model
    assert MODEL_PROCESS_MEMORY not in text


class Gauges(FakeService):
    """Has gauges of a gate: of the model `m`, of another model, of none, and one that is not a number."""

    name = "gauges"

    def metrics(self):
        samples = [((("model", "m"), ("resource", "R1")), 3), ((("model", "other"),), 77), ((), 5), ((), float("nan"))]
        return [MetricFamily("held", "What is held", "gauge", [Sample(*each) for each in samples])]


def test_a_models_page_has_the_gauges_that_name_it_or_no_model(start_server):
    server = start_server(Gauges())

    page = text_of(server.ask("/models/m")[2])
    ((_, event),) = server.events("models/m/versions/1", 1)

    assert re.search(r"Resources and services held ?resource=R1 3 held 5", page)
    assert [(each["labels"], each["value"]) for each in event["details"]["limits"]] == [("resource=R1", 3), ("", 5)]


def test_the_memory_of_one_process_for_all_instances_stands_below_them(start_server):
    text = text_of(start_server(ProcessMemory([])).ask("/models/m")[2])

    assert re.search(r"Memory of the process 41\.0 MiB", text)
    assert "Executes for Memory" not in text


def test_the_threads_of_a_model_have_no_memory_of_their_own(server):
    assert "Executes for Memory" not in text_of(server.ask("/models/m")[2])


def test_a_model_without_a_configuration_is_not_compared_with_one(server, models):
    assert "from what config.pbtxt says" in text_of(server.ask("/models/m")[2])

    (models / "m" / "config.pbtxt").unlink()

    text = text_of(server.ask("/models/m")[2])
    assert "The model has no config.pbtxt" in text
    assert "from what config.pbtxt says" not in text


def test_a_model_that_never_loaded_has_no_version_in_its_heading(start_server, models):
    (models / "broken").mkdir()
    server = start_server(**{"exit-on-error": False})

    heading = re.search("<h1>(.*)</h1>", server.ask("/models/broken")[2])

    assert "broken" in heading[1]
    assert "version" not in heading[1]


def test_the_last_error_has_its_cause(server):
    try:
        raise ValueError("too <cold>")
    except ValueError:
        logging.getLogger("naiad.model").exception("it failed", extra={"model": "m"})

    assert "it failed: ValueError: too &lt;cold&gt;" in server.ask("/models/m")[2]


def test_unknown_models_versions_and_paths_are_answered_with_a_page(server):
    for path, words in [
        ("/models/none", "The server has no model 'none'."),
        ("/models/m/versions/9", "The model 'm' has no version 9."),
        (f"/models/m/versions/{'9' * 5000}", "There is nothing at /models/m/versions/999"),
        ("/nothing", "There is nothing at /nothing."),
    ]:
        status, _, page = server.ask(path)

        assert status == 404
        assert words in page.replace("&#39;", "'")


def test_log_lines_are_shown_as_text(server):
    logging.getLogger("naiad.model").error(EVIL, extra={"model": "m", "version": "1"})

    _, _, page = server.ask("/models/m")

    assert EVIL not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_plugins_are_listed_with_the_reason_of_those_that_were_skipped(start_server):
    class Misspelt:
        @hookimpl
        def naiad_frontend(self):
            """There is no such hook."""

    _, _, page = start_server(Misspelt()).ask("/plugins")

    text = text_of(page)
    assert "naiad_dashboard" in text
    assert "SKIPPED" in text
    assert "did you mean naiad_frontends?" in text


@pytest.mark.parametrize("headers", [{}, {"X_Forwarded_Prefix": "/naiad"}])
def test_links_carry_the_prefix_of_a_proxy(start_server, headers):
    server = start_server(**({} if headers else {"dashboard-root-path": "/naiad"}))

    for path in ("/", "/naiad/"):
        status, _, page = server.ask(path, **headers)

        assert status == 200
        assert set(re.findall(r'(?:href|src)="(/[^/"]*)', page)) == {"/naiad"}
        assert 'data-base="/naiad"' in page


def test_a_forwarded_prefix_that_is_no_path_is_not_used(server):
    _, _, page = server.ask("/", X_Forwarded_Prefix='//evil.example/"><script>')

    assert "evil" not in page


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8003", 200),
        ("[::1]:8003", 200),
        ("10.1.2.3", 200),
        ("localhost:8003", 200),
        ("LOCALHOST.", 200),
        ("models.localhost", 200),
        (socket.gethostname(), 200),
        ("naiad.example.com:8003", 200),
        ("evil.example", 403),
        ("127.0.0.1.evil.example", 403),
        ("localhost@evil.example", 403),
        ("[", 403),
        ("", 403),
    ],
)
def test_hosts_that_are_not_allowed_get_nothing(start_server, host, status):
    server = start_server(**{"dashboard-allowed-hosts": ("naiad.example.com",)})

    for path in ("/", "/events/models", "/models/m/versions/1/trial"):
        answered, headers, page = server.ask(path, "HEAD" if path.startswith("/events") else "GET", Host=host)

        assert (answered == 403) is (status == 403)
        assert headers["content-security-policy"] == CONTENT_SECURITY_POLICY
        assert status == 200 or path.startswith("/events") or "--dashboard-allowed-hosts=" in page


def test_every_host_can_be_allowed(start_server):
    assert start_server(**{"dashboard-allowed-hosts": ("*",)}).ask("/", Host="evil.example")[0] == 200


def test_allowed_hosts_are_names_without_scheme_and_port():
    assert host_names("Naiad.example.com., b,") == ("naiad.example.com", "b")
    for text in ("http://a", "a:8003", "a b", "-a"):
        with pytest.raises(ValueError, match="is not a host name"):
            host_names(text)


@pytest.mark.parametrize("text", ["naiad", "/a b", "//a", "/a//b", '/"'])
def test_a_prefix_is_a_path(text):
    with pytest.raises(ValueError, match="is not a path prefix"):
        prefix(text)


def test_the_prefix_needs_no_last_slash():
    assert (prefix("/a/b/"), prefix("/")) == ("/a/b", "")


def test_restricted_apis_need_their_header(start_server, http_options):
    server = start_server(http_options, **{"http-restricted-api": ("statistics:key=secret",)})

    status, _, page = server.ask("/")

    assert status == 403
    assert "&#39;key&#39;" in page
    assert server.ask("/", key="secret")[0] == 200
    assert server.ask("/events/models")[0] == 403
    assert server.ask("/plugins")[0] == 200


def test_no_page_tells_the_restricted_metadata_and_health_of_the_server(start_server, http_options):
    server = start_server(http_options, **{"http-restricted-api": ("metadata,health:key=secret",)})
    version = server.client.server.metadata().version

    def head_line(path, **headers):
        return text_of(re.search(r'<p class="server">.*?</p>', server.ask(path, **headers)[2], re.DOTALL)[0]).strip()

    assert head_line("/nothing", key="secret") == f"naiad {version} ready"
    assert [head_line(path) for path in ("/plugins", "/nothing", "/slow")] == ["", "", ""]


def test_the_page_of_all_models_shows_its_log_to_those_who_may_read_it(start_server, http_options):
    server = start_server(http_options, **{"http-restricted-api": ("logging:key=secret",)})
    logging.getLogger("naiad").warning("the secret of the log")

    (status, _, page), (_, _, authorized) = server.ask("/"), server.ask("/", key="secret")

    assert (status, "the secret of the log" in page, "the secret of the log" in authorized) == (200, False, True)
    assert "it expects the header <code>key</code>" in page


def test_without_a_dashboard_no_port_is_open(start_server):
    server = start_server(**{"allow-dashboard": False})

    assert server.frontend.port == 0


def test_a_port_that_is_in_use_is_named(start_server, server):
    with pytest.raises(UnavailableError, match="--dashboard-port"):
        start_server(**{"dashboard-port": server.frontend.port})


def test_every_option_is_documented():
    page = (Path(__file__).parents[3] / "docs" / "dashboard.md").read_text()
    for option in OPTIONS:
        assert f"`--{option.name}`" in page


def test_static_files_are_revalidated_by_their_tag(server):
    status, headers, _ = server.ask("/static/dashboard.css")
    again, _, body = server.ask("/static/dashboard.css", If_None_Match=headers["etag"])

    assert (status, again, body) == (200, 304, "")
    assert server.ask("/static/../pages.py")[0] == 404
