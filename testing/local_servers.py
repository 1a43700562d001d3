"""Model servers of an author's own machine, for tests: Ollama, LM Studio and llama.cpp.

Each speaks its real formats, its faults included. Ollama drops the beginning of a prompt that is
longer than its window, and says so only by the count; one that thinks may spend all of its answer
on that. LM Studio answers 200 at paths that it does not have.
"""

from collections.abc import Callable
from typing import Any

from testing.providers import (
    OLLAMA_MODEL,
    ModelServer,
    ReceivedRequest,
    Reply,
    json_reply,
    ndjson_reply,
    ollama_end,
    ollama_lines,
    openai_reply,
)


class OllamaServer(ModelServer):
    """One model in Ollama: its native chat, and OpenAI's, where the window cannot be chosen."""

    def __init__(self, count: Callable[[str], int], model: str = "qwen3:8b") -> None:
        super().__init__()
        self.count = count
        self.model = model
        self.largest = 40_960
        self.usual = 4096
        self.num_ctx: int | None = None
        self.loaded: int | None = None
        self.reports_window = True
        self.thinks_for = 0
        self.text = "夜色沉了下来。"
        self.seen = ""

    def reply_to(self, received: ReceivedRequest) -> Reply:
        """Answer as Ollama does."""
        self.received.append(received)
        if received.path == "/api/ps":
            return json_reply({"models": self._loaded_models()})
        if received.body.get("model") not in {self.model, self.model.removesuffix(":latest")}:
            return self._no_such_model(received)
        if received.path == "/api/show":
            parameters = OLLAMA_MODEL["parameters"]
            if self.num_ctx is not None:
                parameters += f"\nnum_ctx                        {self.num_ctx}"
            facts = {"general.architecture": "qwen3", "qwen3.context_length": self.largest}
            return json_reply(OLLAMA_MODEL | {"parameters": parameters, "model_info": facts})
        if received.path == "/api/chat":
            options = received.body["options"]
            return self._chat(received.body, options.get("num_ctx"), options["num_predict"])
        if received.path == "/v1/chat/completions":
            return self._chat(received.body, None, received.body["max_tokens"], openai=True)
        return Reply([b"404 page not found"], 404, {"content-type": "text/plain"})

    def _no_such_model(self, received: ReceivedRequest) -> Reply:
        message = f"model '{received.body.get('model')}' not found"
        if received.path.startswith("/v1/"):
            error = {"message": message, "type": "not_found_error", "param": None, "code": None}
            return json_reply({"error": error}, 404)
        return json_reply({"error": message}, 404)

    def _loaded_models(self) -> list[dict[str, Any]]:
        if self.loaded is None:
            return []
        entry = {"name": self.model, "model": self.model, "size": 6_000_000_000, "digest": "5"}
        return [entry | ({"context_length": self.loaded} if self.reports_window else {})]

    def _chat(
        self, body: dict[str, Any], window: int | None, most: int, *, openai: bool = False
    ) -> Reply:
        self.loaded = min(window or self.num_ctx or self.usual, self.largest)
        prompt = "".join(message["content"] for message in body["messages"])
        while self.count(prompt) > self.loaded:
            prompt = prompt[len(prompt) // 20 + 1 :]
        self.seen = prompt
        thought = min(self.thinks_for, most)
        text = self.text if thought < most else ""
        reason, counts = ("stop" if text else "length"), (self.count(prompt), thought + len(text))
        if openai:
            return openai_reply(text, reason, *counts)
        thoughts = ollama_lines(["嗯"] * min(thought, 3), "thinking")
        return ndjson_reply(*thoughts, *ollama_lines([text]), ollama_end(reason, *counts))


class LmStudioServer(ModelServer):
    """Models in LM Studio; `old` ones do not report the window that a model was loaded with."""

    def __init__(self, loaded: int | None = 4096, *, old: bool = False, version: int = 0) -> None:
        super().__init__()
        self._loaded = loaded
        self._old = old
        self._version = version

    def reply_to(self, received: ReceivedRequest) -> Reply:
        """Answer as LM Studio does."""
        self.received.append(received)
        if received.path == "/api/v0/models" and self._version == 0:
            state = "not-loaded" if self._loaded is None else "loaded"
            model: dict[str, Any] = {"id": "qwen3-8b", "object": "model", "type": "llm"}
            model |= {"arch": "qwen3", "state": state, "max_context_length": 32_768}
            if self._loaded is not None and not self._old:
                model["loaded_context_length"] = self._loaded
            return json_reply({"object": "list", "data": [model]})
        if received.path == "/api/v1/models" and self._version == 1:
            config = {"context_length": self._loaded}
            instances = [] if self._loaded is None else [{"id": "qwen3-8b", "config": config}]
            model = {"type": "llm", "key": "qwen3-8b", "loaded_instances": instances}
            return json_reply({"models": [model | {"max_context_length": 32_768}]})
        return json_reply({"error": f"Unexpected endpoint or method. (GET {received.path})"})


class LlamaCppServer(ModelServer):
    """One model in llama.cpp's server; while it loads, everything is 503."""

    def __init__(self, window: int = 4096, *, loading: bool = False) -> None:
        super().__init__()
        self._window = window
        self._loading = loading

    def reply_to(self, received: ReceivedRequest) -> Reply:
        """Answer as llama.cpp does."""
        self.received.append(received)
        if self._loading:
            error = {"code": 503, "message": "Loading model", "type": "unavailable_error"}
            return json_reply({"error": error}, 503)
        if received.path == "/props":
            settings = {"id": 0, "n_ctx": self._window, "speculative": False}
            return json_reply({"default_generation_settings": settings, "total_slots": 1})
        error = {"code": 404, "message": "File Not Found", "type": "not_found_error"}
        return json_reply({"error": error}, 404)


class VllmServer(ModelServer):
    """One model in vLLM."""

    def reply_to(self, received: ReceivedRequest) -> Reply:
        """Answer as vLLM does."""
        self.received.append(received)
        if received.path == "/v1/models":
            model = {"id": "qwen3-8b", "object": "model", "max_model_len": 16_384}
            return json_reply({"object": "list", "data": [model]})
        return json_reply({"detail": "Not Found"}, 404)
