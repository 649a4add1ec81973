"""URLs and credentials in the forms of Triton."""

import json
from pathlib import Path

import pytest

from naiad.errors import InvalidArgumentError
from naiad_store.urls import CREDENTIALS, StoreUrl, identity_of, options_of


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("s3://bucket/a/b", ("bucket", "a/b", "", "")),
        ("s3://bucket", ("bucket", "", "", "")),
        ("s3://localhost:9000/bucket/a/", ("bucket", "a", "http://localhost:9000", "")),
        ("s3://https://minio.example:443/bucket/a", ("bucket", "a", "https://minio.example:443", "")),
        ("s3://http://10.0.0.1:80/bucket", ("bucket", "", "http://10.0.0.1:80", "")),
        ("gs://bucket/a", ("bucket", "a", "", "")),
        ("as://account/container/a", ("container", "a", "", "account")),
        ("as://account.blob.core.windows.net/container", ("container", "", "", "account")),
    ],
)
def test_each_form_is_read(text: str, parts: tuple[str, str, str, str]) -> None:
    url = StoreUrl.parse(text)

    assert (url.bucket, url.prefix, url.endpoint, url.account) == parts


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("hf://org/name", ("org/name", "", "", "")),
        ("hf://org/name/a/b/", ("org/name", "", "a/b", "")),
        ("hf://org/name.v2@v1.0/a#resnet", ("org/name.v2", "v1.0", "a", "resnet")),
        ("hf://org/name@refs/pr/3/a", ("org/name", "refs/pr/3", "a", "")),
        ("hf://org/name@feature%2Fx", ("org/name", "feature/x", "", "")),
        ("s3://localhost:9000/bucket/resnet.onnx#resnet", ("bucket", "", "resnet.onnx", "resnet")),
    ],
)
def test_the_hub_has_revisions_and_one_model_a_name(text: str, parts: tuple[str, str, str, str]) -> None:
    url = StoreUrl.parse(text)

    assert (url.bucket, url.revision, url.prefix, url.model) == parts


@pytest.mark.parametrize(
    "text",
    ["hf://name", "hf://org/name@", "hf://", "s3://", "s3://host:9000", "as://account", "gs://", "s3://ftp://h:1/b"],
)
def test_another_form_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"'{text}' is not "):
        StoreUrl.parse(text)


def test_the_longest_prefix_of_the_credential_file_counts_and_the_environment_does_not(tmp_path: Path) -> None:
    entries = {
        "s3": {
            "": {"key_id": "any", "secret_key": "s"},
            "s3://bucket/team": {"key_id": "team", "secret_key": "s", "region": "eu-west-1", "session_token": "t"},
        }
    }
    (tmp_path / "credentials.json").write_text(json.dumps(entries))
    environment = {CREDENTIALS: str(tmp_path / "credentials.json"), "AWS_REGION": "us-west-2"}

    options = options_of(StoreUrl.parse("s3://bucket/team/models"), environment)

    assert options == {
        "bucket": "bucket",
        "access_key_id": "team",
        "secret_access_key": "s",
        "session_token": "t",
        "region": "eu-west-1",
    }
    assert options_of(StoreUrl.parse("s3://other/x"), environment)["access_key_id"] == "any"


def test_a_credential_file_without_an_entry_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "credentials.json").write_text('{"gs": {"gs://mine": "/key.json"}}')
    environment = {CREDENTIALS: str(tmp_path / "credentials.json")}

    assert options_of(StoreUrl.parse("gs://mine/x"), environment)["application_credentials"] == "/key.json"
    with pytest.raises(InvalidArgumentError, match=r"credentials\.json' of .* has no entry for 'gs://yours/x'"):
        options_of(StoreUrl.parse("gs://yours/x"), environment)


def test_a_credential_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="cannot be read"):
        options_of(StoreUrl.parse("s3://b/x"), {CREDENTIALS: str(tmp_path / "gone.json")})


@pytest.mark.parametrize(
    ("text", "environment", "identity"),
    [
        ("s3://b/x", {"AWS_ACCESS_KEY_ID": "AKIA", "AWS_REGION": "eu-west-1"}, "access key 'AKIA', region eu-west-1"),
        ("s3://b/x", {}, "the role of the machine, region us-east-1"),
        ("gs://b/x", {"GOOGLE_APPLICATION_CREDENTIALS": "/k.json"}, "the account of '/k.json'"),
        ("gs://b/x", {}, "the account of the machine"),
        ("as://account/c/x", {"AZURE_STORAGE_KEY": "a2V5"}, "account 'account'"),
        ("as://account/c/x", {"AZURE_STORAGE_CLIENT_ID": "me"}, "client 'me'"),
    ],
)
def test_messages_name_whose_credentials_are_used_and_no_secret(
    text: str, environment: dict[str, str], identity: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    url = StoreUrl.parse(text)

    assert identity_of(url, options_of(url, environment), environment) == identity


def test_the_entry_of_a_credential_file_is_the_identity_whatever_the_environment_has(tmp_path: Path) -> None:
    (tmp_path / "credentials.json").write_text('{"s3": {"": {"key_id": "own", "secret_key": "s"}}}')
    environment = {CREDENTIALS: str(tmp_path / "credentials.json"), "AWS_ACCESS_KEY_ID": "other"}
    url = StoreUrl.parse("s3://b/x")

    assert identity_of(url, options_of(url, environment), environment) == "access key 'own', region us-east-1"


def test_azure_takes_its_variables() -> None:
    options = options_of(StoreUrl.parse("as://account/container/x"), {"AZURE_STORAGE_KEY": "a2V5"})

    assert options == {"account_name": "account", "container_name": "container", "account_key": "a2V5"}


@pytest.fixture
def aws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which AWS's files of profiles, `credentials` and `config`, are looked for."""
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    return tmp_path


def test_a_profile_of_the_files_of_aws_is_taken(aws: Path) -> None:
    (aws / "credentials").write_text("[work]\naws_access_key_id = key\naws_secret_access_key = secret\n")
    (aws / "config").write_text("[profile work]\nregion = eu-north-1\n")

    options = options_of(StoreUrl.parse("s3://b/x"), {"AWS_PROFILE": "work"})

    assert (options["access_key_id"], options["region"]) == ("key", "eu-north-1")
    with pytest.raises(InvalidArgumentError, match="there is no AWS profile 'home'"):
        options_of(StoreUrl.parse("s3://b/x"), {"AWS_PROFILE": "home"})


def test_the_region_of_the_environment_has_precedence_over_that_of_a_profile(aws: Path) -> None:
    (aws / "config").write_text("[profile work]\nregion = eu-north-1\n")
    url = StoreUrl.parse("s3://b/x")

    assert options_of(url, {"AWS_PROFILE": "work", "AWS_REGION": "us-west-2"})["region"] == "us-west-2"
    assert options_of(url, {"AWS_PROFILE": "work", "AWS_DEFAULT_REGION": "us-west-1"})["region"] == "us-west-1"
    assert options_of(url, {"AWS_PROFILE": "work"})["region"] == "eu-north-1"


def test_the_region_of_a_profile_counts_for_keys_of_the_environment_and_its_keys_do_not(aws: Path) -> None:
    (aws / "config").write_text("[default]\nregion = eu-west-1\n")
    (aws / "credentials").write_text("[default]\naws_access_key_id = key\naws_secret_access_key = secret\n")

    options = options_of(StoreUrl.parse("s3://b/x"), {"AWS_ACCESS_KEY_ID": "own", "AWS_SECRET_ACCESS_KEY": "s"})

    assert options == {"bucket": "b", "region": "eu-west-1"}


@pytest.mark.parametrize(
    ("entry", "region"),
    [
        ({}, "eu-west-1"),
        ({"region": "eu-north-1"}, "eu-north-1"),
        ({"key_id": "key", "secret_key": "secret"}, "us-east-1"),
    ],
)
def test_the_region_of_the_environment_counts_for_an_entry_without_keys_and_region(
    tmp_path: Path, entry: dict[str, str], region: str
) -> None:
    (tmp_path / "credentials.json").write_text(json.dumps({"s3": {"": entry}}))
    environment = {CREDENTIALS: str(tmp_path / "credentials.json"), "AWS_REGION": "eu-west-1"}

    assert options_of(StoreUrl.parse("s3://b/x"), environment)["region"] == region


@pytest.mark.parametrize("entries", [["s3://b"], [1], "s3", None])
def test_entries_that_are_not_an_object_are_an_error(tmp_path: Path, entries: object) -> None:
    (tmp_path / "credentials.json").write_text(json.dumps({"s3": entries}))

    with pytest.raises(
        InvalidArgumentError, match=r"'s3' in the credential file '.*credentials\.json' of .* is not an"
    ):
        options_of(StoreUrl.parse("s3://b/x"), {CREDENTIALS: str(tmp_path / "credentials.json")})


@pytest.mark.parametrize(("profile", "in_config"), [("work", "profile work"), ("default", "default")])
def test_keys_of_the_credentials_file_of_aws_have_precedence_over_those_of_its_config(
    aws: Path, profile: str, in_config: str
) -> None:
    for file, section in (("config", in_config), ("credentials", profile)):
        (aws / file).write_text(f"[{section}]\naws_access_key_id = of {file}\naws_secret_access_key = {file}\n")

    options = options_of(StoreUrl.parse("s3://b/x"), {"AWS_PROFILE": profile})

    assert (options["access_key_id"], options["secret_access_key"]) == ("of credentials", "credentials")


def test_a_percent_sign_in_a_profile_is_one(aws: Path) -> None:
    (aws / "credentials").write_text("[default]\naws_access_key_id = key\naws_secret_access_key = 50%(off\n")

    assert options_of(StoreUrl.parse("s3://b/x"), {})["secret_access_key"] == "50%(off"


@pytest.mark.parametrize("content", [b"[default]\nsecret", b"secret", b"[default]\nregion = \xff"])
def test_a_file_of_profiles_that_cannot_be_read_is_an_error_without_its_content(aws: Path, content: bytes) -> None:
    (aws / "credentials").write_bytes(content)

    with pytest.raises(InvalidArgumentError, match="credentials, cannot be read: ") as raised:
        options_of(StoreUrl.parse("s3://b/x"), {})

    assert "secret" not in str(raised.value)
