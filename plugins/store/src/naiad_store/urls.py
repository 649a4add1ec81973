"""URLs of model stores, in the forms of Triton, and the credentials for them."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from naiad.errors import InvalidArgumentError

CREDENTIALS = "TRITON_CLOUD_CREDENTIAL_PATH"
"""The variable that names the credential file."""

_FORMS = {
    "s3": "s3://bucket/path or s3://host:port/bucket/path",
    "gs": "gs://bucket/path",
    "as": "as://account/container/path",
    "hf": "hf://organisation/name/path or hf://organisation/name@revision/path",
}
_HUB = re.compile(r"([\w.-]+/[\w.-]+)(?:@(refs/(?:pr|convert)/\w+|[^/@]+))?(?:/(.*))?")


@dataclass(frozen=True, slots=True)
class StoreUrl:
    """A location in a store. Azure has an `account`, and its container as `bucket`; `prefix` has no slash at its ends.

    `endpoint` is the server, with its scheme, "" for that of the cloud. The `bucket` of the Hugging Face Hub is
    organisation/name, and `revision` its branch, tag or commit, "" for main. `model` is the name for a location that is
    one model, the fragment of the URL.
    """

    text: str
    scheme: str
    bucket: str
    prefix: str
    endpoint: str = ""
    account: str = ""
    revision: str = ""
    model: str = ""

    @classmethod
    def parse(cls, text: str) -> "StoreUrl":
        """Read a URL: each form may have `#model` behind it.

        The forms are `s3://[[http[s]://]host:port/]bucket/path`, `gs://bucket/path`, `as://account/container/path` and
        `hf://organisation/name[@revision]/path`. Raises InvalidArgumentError for another form.
        """
        scheme, _, rest = text.partition("://")
        rest, _, model = rest.partition("#")
        endpoint = account = revision = ""
        if scheme == "s3":
            protocol, inner, behind = rest.partition("://")
            rest, protocol = (behind, protocol) if inner else (rest, "http")
            host = rest.partition("/")[0]
            if inner or ":" in host:
                endpoint, rest = f"{protocol}://{host}", rest.removeprefix(host).lstrip("/")
        elif scheme == "as":
            account, _, rest = rest.partition("/")
            account = account.removesuffix(".blob.core.windows.net")
        if scheme == "hf":
            match = _HUB.fullmatch(rest)
            bucket, revision, prefix = (unquote(part or "") for part in match.groups()) if match else ("", "", "")
        else:
            bucket, _, prefix = rest.partition("/")
        if not bucket or (scheme == "as" and not account) or (endpoint and not endpoint.startswith("http")):
            raise InvalidArgumentError(f"'{text}' is not {_FORMS[scheme]}")
        return cls(text, scheme, bucket, prefix.strip("/"), endpoint, account, revision, model)


def options_of(url: StoreUrl, environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """The options of obstore's store for that URL: location, endpoint and credentials.

    Of a credential file the entry with the longest prefix of the URL counts. Without one these are the variables of the
    environment. obstore looks for what is still missing, such as the keys that an entry leaves out: in its own
    variables of the environment, then as the role of the machine, the pod or the workload. Raises InvalidArgumentError
    for a file or entry that is wrong.
    """
    path = environment.get(CREDENTIALS, "")
    if path:
        own = _of_entry(url, _entry(url, Path(path)), environment)
    else:
        own = {"s3": _s3_environment, "gs": _gs_environment, "as": _as_environment}[url.scheme](environment)
    if ("access_key_id" in own) != ("secret_access_key" in own):
        raise InvalidArgumentError(f"the credentials for '{url.text}' lack the key or its secret; give both")
    return _location(url) | own


def identity_of(url: StoreUrl, options: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> str:
    """Whose credentials those options have, and the region of S3: for messages, without secrets."""
    if url.scheme == "gs":
        path = options.get("application_credentials", "")
        return f"the account of '{path}'" if path else "the account of the machine"
    if url.scheme == "as":
        client = options.get("client_id", "")
        return f"client '{client}'" if client else f"account '{url.account}'"
    key = options.get("access_key_id") or environment.get("AWS_ACCESS_KEY_ID", "")
    return (
        f"access key '{key}', region {options['region']}"
        if key
        else f"the role of the machine, region {options['region']}"
    )


def _location(url: StoreUrl) -> dict[str, Any]:
    if url.scheme == "as":
        return {"account_name": url.account, "container_name": url.bucket}
    if not url.endpoint:
        return {"bucket": url.bucket}
    return {"bucket": url.bucket, "endpoint": url.endpoint, "virtual_hosted_style_request": False}


def _s3_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    has_keys = "AWS_ACCESS_KEY_ID" in environment
    profile = environment.get("AWS_PROFILE", "")
    options = _of_profile(profile or "default", required=bool(profile) and not has_keys)
    if has_keys:  # of the profile the region alone counts then
        options = {name: value for name, value in options.items() if name == "region"}
    return {"region": "us-east-1"} | options | _region(environment)


def _region(environment: Mapping[str, str]) -> dict[str, Any]:
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    return {"region": region} if region else {}


def _gs_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    path = environment.get("GOOGLE_APPLICATION_CREDENTIALS", "")
    return {"application_credentials": path} if path else {}


def _as_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if key := environment.get("AZURE_STORAGE_KEY", ""):
        options["account_key"] = key
    if client := environment.get("AZURE_STORAGE_CLIENT_ID", ""):
        options["client_id"] = client
    return options


def _entry(url: StoreUrl, path: Path) -> Any:
    """The entry of the credential file with the longest prefix of the URL."""
    try:
        entries = json.loads(path.read_text(encoding="utf-8")).get(url.scheme, {})
    except (OSError, ValueError, AttributeError) as error:
        raise InvalidArgumentError(f"the credential file '{path}' of {CREDENTIALS} cannot be read: {error}") from error
    if not isinstance(entries, Mapping):
        raise InvalidArgumentError(
            f"'{url.scheme}' in the credential file '{path}' of {CREDENTIALS} is not an object with entries by prefix"
        )
    matching = [prefix for prefix in entries if url.text.startswith(prefix)]
    if not matching:
        raise InvalidArgumentError(
            f"the credential file '{path}' of {CREDENTIALS} has no entry for '{url.text}'; add one for it, or one for "
            f'"" in "{url.scheme}"'
        )
    return entries[max(matching, key=len)]


def _of_entry(url: StoreUrl, entry: Any, environment: Mapping[str, str]) -> dict[str, Any]:
    if url.scheme == "gs":
        return {"application_credentials": str(entry)} if entry else {}
    if not isinstance(entry, Mapping):
        raise InvalidArgumentError(f"the entry for '{url.text}' in the file of {CREDENTIALS} is not an object")
    if url.scheme == "as":
        names = {"account_str": "account_name", "account_key": "account_key", "client_id": "client_id"}
        return {option: entry[name] for name, option in names.items() if entry.get(name)}
    names = {"key_id": "access_key_id", "secret_key": "secret_access_key", "session_token": "session_token"}
    options = {option: entry[name] for name, option in names.items() if entry.get(name)}
    if entry.get("profile"):
        options |= _of_profile(entry["profile"], required=True)
    around = {} if "access_key_id" in options else _region(environment)  # the region comes from where the keys do
    own = {"region": entry["region"]} if entry.get("region") else {}
    return {"region": "us-east-1"} | around | options | own


def _of_profile(name: str, required: bool) -> dict[str, Any]:
    """What AWS's files say of a profile; the file of credentials has the last word."""
    from configparser import ConfigParser, Error

    files = ConfigParser(interpolation=None)
    names = (("AWS_CONFIG_FILE", "config"), ("AWS_SHARED_CREDENTIALS_FILE", "credentials"))
    paths = [os.environ.get(variable) or Path.home() / ".aws" / file for variable, file in names]
    try:
        files.read(paths, encoding="utf-8")
    except (Error, UnicodeDecodeError) as error:
        reason = str(error).partition("\n")[0]  # the next lines quote the file, which has secrets
        listed = " or ".join(map(str, paths))
        raise InvalidArgumentError(f"AWS's file of profiles, {listed}, cannot be read: {reason}") from None
    sections = [section for section in (f"profile {name}", name) if files.has_section(section)]
    if required and not sections:
        raise InvalidArgumentError(f"there is no AWS profile '{name}' in {' or '.join(map(str, paths))}")
    known = {"aws_access_key_id": "access_key_id", "aws_secret_access_key": "secret_access_key"}
    known |= {"aws_session_token": "session_token", "region": "region"}
    return {
        option: value
        for section in sections
        for key, value in files.items(section)
        if (option := known.get(key)) is not None
    }
