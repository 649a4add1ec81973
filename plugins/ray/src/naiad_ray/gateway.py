"""Gateway for clients: an ASGI application and RPCs that order, merge, forward, or answer by their own server."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import quote

from naiad.errors import UnavailableError
from naiad.reports import IndexEntry, Readiness
from naiad_kit.frontends.embedding import Message, Receive, Send
from naiad_ray.board import Payload, Question, Result
from naiad_ray.control import QUESTION_SECONDS, READINESS_SECONDS
from naiad_ray.local import LocalServer, Views, answer_asgi, answer_in_json, views
from naiad_ray.merging import merged_index, merged_statistics
from naiad_ray.raw import GrpcRequest, HttpRequest, RawAnswer
from naiad_ray.request_fields import Subject, subject_of

UNAVAILABLE, INTERNAL, NOT_FOUND = 14, 13, 5
_STREAMED = b"/generate_stream"


class Forwarder(Protocol):
    """Takes requests about models to the replicas that serve them."""

    def group_of(self, model: str) -> str | None:
        """The group of a model, None if there is none."""
        ...

    async def answer(self, request: HttpRequest | GrpcRequest, model: str) -> RawAnswer:
        """The answer of a replica."""
        ...

    async def stream_http(self, request: HttpRequest, model: str, send: Send) -> None:
        """Send a replica's answer as it comes."""
        ...


class Gateway:
    """The routes of clients beside one server. Without a `forwarder`, that server has the models itself."""

    def __init__(
        self, local: LocalServer, control: Any, groups: Sequence[str], forwarder: Forwarder | None = None
    ) -> None:
        self._local = local
        self._control = control
        self._groups = tuple(groups)
        self._forwarder = forwarder
        self._most: int = local.server.settings.get("http-max-input-size", 1 << 26)
        self._ready: Readiness | None = None

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one request by ASGI."""
        if scope["type"] == "lifespan":
            await _live(receive, send)
            return
        path: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
        head = HttpRequest(
            scope["method"], path.partition(b"?")[0], scope["query_string"], tuple(scope["headers"]), b""
        )
        subject = subject_of(head)
        if subject.action == "report":
            try:
                views.set(await self._views(subject))
            except UnavailableError as error:
                await answer_asgi(error_answer(head, UNAVAILABLE, str(error)), send)
                return
        elif subject.action == "order" or (self._forwarder is not None and (subject.model or subject.action)):
            try:
                body = await _body(receive, self._most)
            except ConnectionResetError:
                return
            if body is None:
                await answer_asgi(_too_long(self._most), send)
                return
            request = HttpRequest(head.method, head.path, head.query, head.headers, body)
            subject = subject_of(request)  # the names of changed settings are in the body
            if self._forwarder is not None and request.path.endswith(_STREAMED):
                await self._forwarder.stream_http(request, subject.model, send)
            else:
                await answer_asgi(await self._act(request, subject), send)
            return
        await self._local.serve_http(scope, receive, send)

    async def rpc(self, request: GrpcRequest) -> RawAnswer:
        """The answer to a call with one message."""
        subject = subject_of(request)
        if subject.action == "report":
            try:
                views.set(await self._views(subject))
            except UnavailableError as error:
                return error_answer(request, UNAVAILABLE, str(error))
        elif subject.action == "order" or (self._forwarder is not None and (subject.model or subject.action)):
            return await self._act(request, subject)
        return await self._local.answer(request)

    async def _act(self, request: HttpRequest | GrpcRequest, subject: Subject) -> RawAnswer:
        if subject.action == "order":
            return await self._order(request, subject)
        if self._forwarder is None:
            return await self._local.answer(request)
        return await self._forwarder.answer(request, subject.model)

    # orders

    async def _order(self, request: HttpRequest | GrpcRequest, subject: Subject) -> RawAnswer:
        """Have all replicas of the groups concerned carry out a request."""
        groups = self._groups_of(subject.model)
        if not groups:
            return error_answer(
                request, NOT_FOUND, f"no group serves the model '{subject.model}'; name it in naiad-ray.yaml"
            )
        try:
            results = await asyncio.gather(*(self._publish(group, request, subject.key) for group in groups))
        except UnavailableError as error:
            return error_answer(request, UNAVAILABLE, str(error))
        answers: dict[str, Any] = {name: answer for result in results for name, answer in result.answers.items()}
        lost = [name for result in results for name in result.lost]
        return conclude(request, answers, lost)

    async def _publish(self, group: str, payload: Payload, key: str = "", seconds: float | None = None) -> Result:
        """The result of an order. Raises UnavailableError if the control plane ends meanwhile, or does not answer."""
        try:
            async with asyncio.timeout(None if seconds is None else seconds + 1):
                result: Result = await self._control.publish.remote(group, payload, key, seconds)
        except Exception as error:  # Ray's errors, which this module does not import
            raise UnavailableError(
                f"the control plane is being replaced ({type(error).__name__}), and whether every replica carried this "
                "out is unknown: send it again"
            ) from error
        return result

    def _groups_of(self, model: str) -> tuple[str, ...]:
        if not model or self._forwarder is None:
            return self._groups
        group = self._forwarder.group_of(model)
        return () if group is None else (group,)

    # reports

    async def _views(self, subject: Subject) -> Views:
        """What the replicas say about themselves, merged."""
        groups = self._groups_of(subject.model)
        if subject.about == "readiness":
            return Views(readiness=await self._readiness(groups))
        question = Question(subject.about, subject.model, subject.version)
        results = await asyncio.gather(*(self._publish(group, question, "", QUESTION_SECONDS) for group in groups))
        reports = [each for result in results for each in result.answers.values()]
        if subject.about == "statistics":
            counted = [each for each in reports if isinstance(each, list)]
            return Views(statistics=merged_statistics(counted) if counted else None)
        entries: list[list[IndexEntry]] = [each for each in reports if isinstance(each, list)]
        return Views(index=merged_index(entries))

    async def _readiness(self, groups: Sequence[str]) -> Readiness:
        """The readiness of all groups; the last one known while no control plane answers, which requests do not need.

        Raises UnavailableError if none is known.
        """
        question = Question("readiness")
        try:
            results = await asyncio.gather(*(self._publish(group, question, "", READINESS_SECONDS) for group in groups))
        except UnavailableError:
            if self._ready is None:
                raise
        else:
            self._ready = _readiness(dict(zip(groups, results, strict=True)))
        return self._ready


def _readiness(results: Mapping[str, Result]) -> Readiness:
    """Ready if each group has a replica that is; otherwise with the reasons of every group that has none."""
    reasons: list[str] = []
    for group, result in results.items():
        reports = [each for each in result.answers.values() if isinstance(each, Readiness)]
        if not any(each.ready for each in reports):
            own = [reason for each in reports for reason in each.reasons]
            reasons.append(f"group '{group}': " + ("; ".join(own) or "it has no replica"))
    return Readiness(not reasons, tuple(reasons))


def conclude(request: HttpRequest | GrpcRequest, answers: Mapping[str, RawAnswer], lost: Sequence[str]) -> RawAnswer:
    """The one answer for a client: a replica's if all agree, else an error that names the replicas that did not."""
    failed = {name: answer for name, answer in answers.items() if not answer.succeeded}
    if answers and not lost and len(failed) in (0, len(answers)):
        return next(iter(answers.values()))
    reasons = [f"replica {name}: {_reason(answer)}" for name, answer in failed.items()]
    reasons += [f"replica {name} ended or stopped answering before it carried the order out" for name in lost]
    if not answers and not lost:
        reasons = ["there is no replica now"]
    count = len(answers) - len(failed)
    kept = count or not answers
    next_step = "Replicas that come up later will; send the request again for the others" if kept else "Send it again"
    return error_answer(
        request,
        UNAVAILABLE,
        f"{count} of {len(answers) + len(lost)} replicas carried this out; {'; '.join(reasons)}. {next_step}",
    )


def _reason(answer: RawAnswer) -> str:
    if answer.text or not answer.body:
        return answer.text or f"status {answer.status}"
    try:
        return str(json.loads(answer.body)["error"])
    except (ValueError, KeyError, TypeError):
        return answer.body[:200].decode("utf-8", "replace")


_HTTP_STATUS = {UNAVAILABLE: 503, NOT_FOUND: 404}


def error_answer(request: HttpRequest | GrpcRequest, code: int, message: str) -> RawAnswer:
    """An error in the protocol of the request; `code` is that of gRPC."""
    if isinstance(request, GrpcRequest):
        return RawAnswer(code, text=message)
    return answer_in_json(_HTTP_STATUS.get(code, 500), json.dumps({"error": message}).encode())


def _too_long(most: int) -> RawAnswer:
    message = f"the body has more than the {most} bytes that http-max-input-size allows"
    return answer_in_json(413, json.dumps({"error": message}).encode())


async def _body(receive: Receive, most: int) -> bytes | None:
    """The body of a request; None if it is too long. Raises ConnectionResetError if the client leaves within it."""
    parts: list[bytes] = []
    size = 0
    while True:
        event = await receive()
        if event["type"] != "http.request":
            raise ConnectionResetError
        parts.append(event.get("body", b""))
        size += len(parts[-1])
        if size > most:
            return None
        if not event.get("more_body"):
            return parts[0] if len(parts) == 1 else b"".join(parts)


async def _live(receive: Receive, send: Send) -> None:
    """Answer the lifespan events of ASGI: the deployment itself starts and stops the server."""
    while True:
        event = await receive()
        await send({"type": f"{event['type']}.complete"})
        if event["type"] == "lifespan.shutdown":
            return
