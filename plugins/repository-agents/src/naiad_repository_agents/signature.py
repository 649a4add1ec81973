"""The repository agent `signature`: verifies the signature of a whole model folder with the library model-signing."""

import ast
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from naiad.errors import InvalidArgumentError, NotFoundError
from naiad.options import Option, Settings, boolean
from naiad.repositories import GuardedModel

if TYPE_CHECKING:
    from model_signing.verifying import Config

OPTIONS = (
    Option("require-signed", False, "load only models whose signature was verified", boolean),
    Option("signature-public-key", "", "the public key (PEM) that model signatures are verified with", metavar="FILE"),
    Option(
        "signature-certificates",
        (),
        "a certificate (PEM) that model signatures must lead to; may be given several times, the root last",
        metavar="FILE",
        repeatable=True,
    ),
)
"""The options of the agent: whom to trust is the server's business, never the model's."""

_FILE = "model.sig"
_DIGEST = re.compile(r"""Digest\(algorithm='[^']*', digest_value=(b(['"])(?:\\.|(?!\2).)*\2)\)""")


class SignatureAgent:
    """Refuses a model unless the signature in its folder covers every file there and is by the key of the options.

    Files of git, as `.git/` and `.gitignore`, and those that the signer left out need not be covered.
    The parameter `file` names the signature, `model.sig` where there is none.
    """

    name = "signature"

    def required(self, settings: Settings) -> bool:
        """With `--require-signed`."""
        return bool(settings["require-signed"])

    @contextmanager
    def guard(self, model: GuardedModel) -> Iterator[Path]:
        """The model's own folder. Raises InvalidArgumentError for a signature that is missing or does not hold."""
        unknown = ", ".join(sorted(model.parameters.keys() - {"file"}))
        if unknown:
            raise InvalidArgumentError(
                f"model '{model.name}': the agent 'signature' has no parameter {unknown}; it takes 'file', and "
                "the key from --signature-public-key or --signature-certificates"
            )
        verifier, file = _verifier(model), model.parameters.get("file", _FILE)
        signature = model.directory / file
        if not signature.resolve().is_relative_to(model.directory.resolve()) or not signature.is_file():
            raise InvalidArgumentError(
                f"model '{model.name}' is not signed: its folder has no '{file}'; sign the folder with "
                "model_signing sign, or serve it without --require-signed and the agent 'signature'"
            )
        try:
            verifier.verify(model.directory, signature)
        except Exception as error:  # the library raises errors of many kinds for what is wrong with a signature
            reason = _readable(str(error)) or type(error).__name__
            raise InvalidArgumentError(
                f"model '{model.name}': the signature '{file}' does not hold: {reason}"
            ) from error
        yield model.directory


def _readable(message: str) -> str:
    """The library's message with differences one by one and digests in hexadecimal, where it has lists and bytes."""
    intro, bracket, listed = message.partition("[")
    try:
        differences = ast.literal_eval(bracket + listed)
    except (SyntaxError, ValueError):
        return message
    return intro + "; ".join(_DIGEST.sub(lambda match: ast.literal_eval(match[1]).hex(), each) for each in differences)


def _verifier(model: GuardedModel) -> "Config":
    """What verifies with the key or the certificates of the options."""
    key, certificates = model.settings["signature-public-key"], model.settings["signature-certificates"]
    if bool(key) == bool(certificates):
        step = "not with both" if key else "which say who may sign"
        raise InvalidArgumentError(
            f"the signature of model '{model.name}' cannot be verified: start the server with "
            f"--signature-public-key or --signature-certificates, {step}"
        )
    try:
        from model_signing import verifying
    except ImportError as error:
        raise NotFoundError(
            f"the signature of model '{model.name}' cannot be verified: the library model-signing is not installed; "
            "pip install 'naiad-repository-agents[signature]'"
        ) from error
    for file in (key, *certificates):
        if file and not Path(file).is_file():
            raise InvalidArgumentError(f"there is no file '{file}' to verify model '{model.name}' with")
    config = verifying.Config()  # type: ignore[no-untyped-call]
    if key:
        return config.use_elliptic_key_verifier(public_key=key)
    return config.use_certificate_verifier(certificate_chain=certificates)
