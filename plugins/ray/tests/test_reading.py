"""The file `naiad-ray.yaml`: what it may say, and where its mistakes are."""

from pathlib import Path

import pytest

from naiad.errors import InvalidArgumentError
from naiad.options import Option
from naiad_ray.reading import parse_description, read_description

WHOLE = """
name: shop
repository: [models]
options: {log-verbose: 1}
http: {host: 127.0.0.1, port: 9000}
grpc: {port: 9001}
front_desk: {replicas: 2, num_cpus: 0.5}
groups:
  - name: text
    models: [bert-*, tokenizer]
    autoscale: {minimum: 1, maximum: 4, target: 16, by: queue}
    num_gpus: 0.5
    labels: {zone: a}
  - name: rest
    replicas: 3
"""


def test_every_part_of_a_file_is_read() -> None:
    description = parse_description(WHOLE, "naiad-ray.yaml")

    text, rest = description.groups
    assert (description.name, description.http.port) == ("shop", 9000)
    assert description.grpc is not None
    assert description.grpc.port == 9001
    assert text.autoscale is not None
    assert (text.autoscale.maximum, text.autoscale.by, text.num_gpus, text.labels) == (4, "queue", 0.5, {"zone": "a"})
    assert (rest.replicas, rest.models) == (3, ())


def test_a_model_belongs_to_the_group_that_names_it_or_to_the_one_that_names_none() -> None:
    description = parse_description(WHOLE, "naiad-ray.yaml")

    groups = [description.group_of(model) for model in ("bert-large", "tokenizer", "resnet")]

    assert [group.name for group in groups if group is not None] == ["text", "text", "rest"]


def test_a_model_that_no_group_names_has_none() -> None:
    description = parse_description("repository: m\ngroups: [{name: a, models: [b]}]", "f")

    assert description.group_of("c") is None


def test_a_file_without_groups_has_one_with_every_model() -> None:
    (group,) = parse_description("repository: models", "f").groups

    assert (group.name, group.models, group.replicas) == ("models", (), None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("repository: m\ngruops: []", "f:2: gruops: there is no such key; did you mean groups?"),
        ("repository: m\nzzzzz: 1", "f:2: zzzzz: there is no such key; the keys are name, repository, options,"),
        (
            "repository: m\ngroups:\n  - name: a\n    replicas: 0",
            "f:4: groups[0].replicas: input should be greater than or equal to 1, and is 0",
        ),
        (
            "repository: m\ngroups:\n  - name: a\n    replcas: 2",
            "f:4: groups[0].replcas: there is no such key; did you mean replicas?",
        ),
        (
            "repository: m\ngroups:\n  - name: a\n    autoscale: {minimun: 2}",
            "f:4: groups[0].autoscale.minimun: there is no such key; did you mean minimum?",
        ),
        (
            "repository: m\ngroups:\n  - name: a\n    autoscale: {minimum: 3, maximum: 2}",
            "f:4: groups[0].autoscale: minimum is 3, more than the maximum of 2",
        ),
        (
            "repository: m\ngroups:\n  - name: a\n    replicas: 2\n    autoscale: {maximum: 2}",
            "f:3: groups[0]: has both replicas and autoscale; keep one of them",
        ),
        ("repository: m\nhttp: {port: 70000}", "f:2: http.port: input should be less than or equal to 65535"),
        ("repository: m\ngroups:\n- {name: a, models: [x]}\n- {name: a}", "f:1: two groups are named 'a'"),
        ("repository: m\ngroups: [{name: a}, {name: b}]", "f:1: the groups a and b have no models"),
        ("repository: m\ngroups: [{name: front-desk}]", "f:1: a group cannot be named 'front-desk'"),
        ("groups: [{name: a}]", "f:1: group 'a' has no model repository; add the key repository"),
        ("repository: m\ngroups: [{models: [a]}]", "f:2: groups[0].name: field required"),
        ("a: [", "f:1: "),
        ("- a", "f:1: the file must be a mapping with the keys name, repository,"),
    ],
)
def test_a_mistake_is_reported_with_its_line_and_key(text: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        parse_description(text, "f")

    assert message in str(raised.value)


def test_a_mistake_in_the_only_group_is_reported_once() -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        parse_description("repository: m\ngroups:\n- name: a\n  replicas: two", "f")

    assert str(raised.value) == "f:4: groups[0].replicas: input should be a valid integer, and is 'two'"


def test_every_mistake_is_reported_at_once() -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        parse_description("repository: m\nname: 'a b'\nhttp: {port: -1}", "f")

    assert [line.split(":")[1] for line in str(raised.value).splitlines()] == ["2", "3"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("repository: m\noptions:\n  log-verbos: 1", "f:3: options: "),
        (
            "repository: m\ngroups:\n- name: a\n  options:\n    http-port: 1",
            "f:5: groups[0].options: http-port ",
        ),
        (
            "repository: m\noptions: {log-verbose: x}\ngroups:\n- {name: a, options: {log-verbose: y}}",
            "f:2: options: log-verbose: invalid literal for int() with base 10: 'x'\nf:4: groups[0].options: log-verb",
        ),
    ],
)
def test_an_option_that_no_replica_can_have_is_reported_with_its_line_and_key(text: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        parse_description(text, "f", (Option("log-verbose", 0, "", int),))

    assert message in str(raised.value)


def test_folders_are_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "naiad-ray.yaml").write_text("repository: models\ngroups: [{name: a, repository: [../b]}]")

    description = read_description(tmp_path)

    assert description.repository == (str(tmp_path / "models"),)
    assert description.groups[0].repository == (str(tmp_path.parent / "b"),)


def test_a_folder_without_a_file_is_a_repository(tmp_path: Path) -> None:
    description = read_description(tmp_path)

    assert (description.repository, len(description.groups)) == ((str(tmp_path),), 1)


def test_the_urls_of_stores_stay_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "naiad-ray.yaml").write_text("repository: [models, s3://bucket/a//b]\ngroups: [{name: a}]")

    assert read_description(tmp_path).repository == (str(tmp_path / "models"), "s3://bucket/a//b")
    assert read_description("hf://org/name").repository == ("hf://org/name",)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"no\.yaml' cannot be read"):
        read_description(tmp_path / "no.yaml")
