"""The stand-in server: HTTP/1.1 on a thread, in vLLM's dialect, with faults to order.

A test that needs a server which lies subclasses `FakeVllm` and overrides what it lies about: `chat`, `amend`,
`metrics`, `server_info`, `reset_prefix_cache`, `health`, or `engine_class`.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, ClassVar, Self
from urllib.parse import parse_qs, urlsplit

from . import facts
from .config import FakeConfig
from .engine import Engine, Generation
from .protocol import RefusedError, chat_response, check_length, omit_fields, parse_request
from .text import decode, encode


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What goes back over the wire."""

    status: int
    body: bytes = b""
    content_type: str = "application/json"
    cut: bool = False
    """Send half of the body, then close."""


class HungUpError(Exception):
    """The request gets no answer and the connection closes."""


def json_answer(body: object, status: int = 200) -> HttpAnswer:
    """An answer with a JSON body."""
    return HttpAnswer(status, json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode())


class FakeVllm:
    """A server that listens from construction to `close`, or to its death."""

    engine_class: ClassVar[type[Engine]] = Engine

    def __init__(self, config: FakeConfig | None = None) -> None:
        self.config = config or FakeConfig()
        self.engine = self.engine_class(self.config)
        self.requests: list[dict[str, Any]] = []
        """Bodies of the chat completion requests so far, as sent."""
        self.is_dead = False
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._http = _HttpServer((self.config.host, self.config.port), _Handler)
        self._http.fake = self
        self.port = int(self._http.server_address[1])
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), name="fake-vllm", daemon=True)
        self._thread.start()

    @property
    def base_url(self) -> str:
        """Where it listens, without a slash at the end and without /v1."""
        return f"http://{self.config.host}:{self.port}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening and close every connection; requests in flight get no answer."""
        with self._lock:
            first = not self._closing.is_set()
            self._closing.set()
        if first:
            self._http.shutdown()
            self._http.server_close()
            self._http.close_connections()
            self._thread.join()

    def die(self) -> None:
        """What a dying server does: it stops listening and every connection breaks."""
        self.is_dead = True
        self.close()

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> HttpAnswer:
        """Answer one HTTP request.

        Raises:
            HungUpError: If there is no answer.
        """
        url = urlsplit(target)
        if url.path.startswith("/v1") and self.config.api_key is not None:
            scheme, _, token = _header(headers, "authorization").partition(" ")
            if scheme.lower() != "bearer" or token != self.config.api_key:
                return json_answer({"error": "Unauthorized"}, 401)
        routes = self.routes()
        route = routes.get((method, url.path))
        if route is None:
            known = any(path == url.path for _, path in routes)
            text, status = ("Method Not Allowed", 405) if known else ("Not Found", 404)
            return json_answer(RefusedError(text, status=status, kind=text).body(), status)
        try:
            return route(parse_qs(url.query), body)
        except RefusedError as refused:
            return json_answer(refused.body(), refused.status)

    def routes(self) -> dict[tuple[str, str], Callable[[Mapping[str, list[str]], bytes], HttpAnswer]]:
        """Method and path to what answers, given the query and the body."""
        open_routes: dict[tuple[str, str], Callable[[Mapping[str, list[str]], bytes], HttpAnswer]] = {
            ("GET", "/health"): lambda query, body: self.health(),
            ("GET", "/version"): lambda query, body: json_answer({"version": self.config.version}),
            ("GET", "/v1/models"): lambda query, body: json_answer(facts.models(self.config)),
            ("GET", "/metrics"): lambda query, body: HttpAnswer(
                200, self.metrics().encode(), "text/plain; version=0.0.4; charset=utf-8"
            ),
            ("GET", "/openapi.json"): lambda query, body: json_answer(facts.openapi(self.config)),
            ("POST", "/v1/chat/completions"): lambda query, body: self._counted_chat(body),
            ("POST", "/v1/completions"): lambda query, body: self.complete(body),
            ("POST", "/tokenize"): lambda query, body: self.tokenize(body),
            ("POST", "/detokenize"): lambda query, body: json_answer({"prompt": decode(json.loads(body)["tokens"])}),
        }
        if self.config.dev_mode:
            open_routes["POST", "/reset_prefix_cache"] = lambda query, body: self.reset_prefix_cache()
            open_routes["GET", "/server_info"] = lambda query, body: self.server_info(query)
        return open_routes

    def health(self) -> HttpAnswer:
        """/health: an empty 200, or 503."""
        return HttpAnswer(503 if self.config.faults.unhealthy else 200, b"")

    def metrics(self) -> str:
        """/metrics."""
        return facts.metrics_text(self.config, self.engine)

    def server_info(self, query: Mapping[str, list[str]]) -> HttpAnswer:
        """/server_info, as JSON or with the config as text."""
        info = facts.server_info(self.config)
        if query.get("config_format") != ["json"]:
            info["vllm_config"] = str(info["vllm_config"])
        return json_answer(info)

    def reset_prefix_cache(self) -> HttpAnswer:
        """/reset_prefix_cache: 200 whether or not it did."""
        faults = self.config.faults
        if faults.reset_fails or faults.reset_lies:
            return json_answer({"success": faults.reset_lies})
        return json_answer({"success": self.engine.reset_prefix_cache()})

    def complete(self, body: bytes) -> HttpAnswer:
        """/v1/completions, of a prompt of token ids and one token to write: for what it leaves in the cache."""
        request = json.loads(body)
        cached = self.engine.prefill(request["prompt"], request.get("cache_salt") or "")
        usage = {
            "prompt_tokens": len(request["prompt"]),
            "completion_tokens": 1,
            "total_tokens": len(request["prompt"]) + 1,
            "prompt_tokens_details": {"cached_tokens": cached},
        }
        choice = {"index": 0, "text": "", "logprobs": None, "finish_reason": "length"}
        return json_answer(
            {"object": "text_completion", "model": request["model"], "choices": [choice], "usage": usage}
        )

    def tokenize(self, body: bytes) -> HttpAnswer:
        """/tokenize, of a prompt or of messages."""
        request = json.loads(body)
        text = request["prompt"] if "prompt" in request else self.engine.prompt_of(request)
        tokens = encode(text)
        strings = [decode([token]) for token in tokens] if request.get("return_token_strs") else None
        answer = {"count": len(tokens), "max_model_len": self.config.max_model_len, "tokens": tokens}
        return json_answer(answer | {"token_strs": strings})

    def chat(self, request: dict[str, Any]) -> dict[str, Any]:
        """The JSON that answers a valid chat completion request.

        Raises:
            RefusedError: If the prompt does not fit.
        """
        check_length(request, len(encode(self.engine.prompt_of(request))), self.config)
        generation = self.engine.run(request)
        body = chat_response(request, generation, self.config)
        omit_fields(body, self.config.faults.omit)
        self.amend(body, generation)
        return body

    def amend(self, body: dict[str, Any], generation: Generation) -> None:
        """Change an answer before it goes out; a lying server overrides this."""

    def _counted_chat(self, body: bytes) -> HttpAnswer:
        faults = self.config.faults
        with self._lock:
            number = len(self.requests) + 1
            self.requests.append(_object_or_empty(body))
        if faults.die_after_requests is not None and number > faults.die_after_requests:
            self.die()
            raise HungUpError
        if number in faults.hang_on:
            self._closing.wait(faults.hang_s)
            raise HungUpError
        if number in faults.error_on:
            raise RefusedError("Internal server error", status=500, kind="InternalServerError")
        answer = json_answer(self.chat(parse_request(body, self.config)))
        return HttpAnswer(answer.status, answer.body, cut=number in faults.truncate_on)


class _HttpServer(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256
    fake: FakeVllm

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._connections: set[socket.socket] = set()
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().shutdown_request(request)

    def close_connections(self) -> None:
        for connection in tuple(self._connections):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # The client was faster.

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not self.fake._closing.is_set():
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: _HttpServer

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def version_string(self) -> str:
        return "uvicorn"

    def log_message(self, format: str, *args: Any) -> None:
        return

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            answer = self.server.fake.answer(self.command, self.path, dict(self.headers.items()), body)
            self.send_response(answer.status)
            if answer.body:
                self.send_header("Content-Type", answer.content_type)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body[: len(answer.body) // 2] if answer.cut else answer.body)
            self.wfile.flush()
            self.close_connection = self.close_connection or answer.cut
        except (HungUpError, ConnectionError):
            self.close_connection = True


def _header(headers: Mapping[str, str], name: str) -> str:
    return next((value for key, value in headers.items() if key.lower() == name), "")


def _object_or_empty(body: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(body)
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}
