"""Models at run time, against a real process and servers that speak the real ones' formats."""

from pathlib import Path

from creonowd.tokens import Tokenizers
from testing.clients import over_stdio
from testing.local_servers import OllamaServer
from testing.novels import make_novel
from testing.providers import KEY, ScriptedAnthropic, open_model_server, open_server

PROSE = "".join(
    f"第{n}天，他数过{n * 3}盏灯，才找到第{n % 7}条街的那扇门。\n\n" for n in range(600)
)


async def test_an_author_changes_models_and_sees_what_each_saw(tmp_path: Path) -> None:
    user_data = tmp_path / "用户 数据"
    count = (await Tokenizers().get("qwen3")).count
    async with (
        open_server(OllamaServer(count)) as ollama,
        open_model_server() as anthropic,
        over_stdio(user_data) as client,
    ):
        files = {"一.md": PROSE, ".creonow/rules/style.md": "写人先写手。\n"}
        novel = await make_novel(
            client, tmp_path / "小说", files, skillId=None, cursorPosition=len(PROSE)
        )
        (user_data / "keys").mkdir()
        (user_data / "keys" / "claude").write_text(KEY, encoding="utf-8")
        (user_data / "keys" / "claude").chmod(0o600)
        local = {"model": "qwen3:8b", "baseUrl": f"{ollama.url}/v1"}
        native = {"provider": "ollama", "model": "qwen3:8b", "baseUrl": ollama.url}
        claude = {"provider": "anthropic", "model": "claude-sonnet-4-5", "baseUrl": anthropic.url}
        backends = {"local": local, "native": native, "claude": claude}
        await client.call("ai:config:set", {"backends": backends, "use": "local"})
        small = await novel.run(maxOutputTokens=500)
        seen_small = ollama.seen
        ollama.largest, ollama.usual = 2048, 2048
        shrunk = await novel.run(backend="local", maxOutputTokens=300)
        ollama.largest = 40_960
        large = await novel.run(backend="native")
        scripted = ScriptedAnthropic(anthropic, 60_000)
        await scripted.provider.close()
        scripted.sends("", stop="length")  # pyright: ignore[reportArgumentType]
        thought = await novel.run(backend="claude")
    async with over_stdio(user_data) as again:
        config = await again.call("ai:config:get")

    codes = [[n["code"] for n in run["notices"]] for run in (small, shrunk, large, thought)]
    assert "CONTEXT_WINDOW_REDUCED" in codes[0]
    assert seen_small.startswith("# CreoNow")
    assert "PROMPT_TRUNCATED_BY_SERVER" in codes[1]
    assert not {"CONTEXT_WINDOW_REDUCED", "PROMPT_TRUNCATED_BY_SERVER"} & set(codes[2])
    assert "OUTPUT_EMPTY_AFTER_THINKING" in codes[3]
    assert (config["backend"], len(config["backends"])) == ("local", 4)
    logs = b"".join(path.read_bytes() for path in (user_data / "logs").iterdir())
    assert KEY.encode() not in logs + (user_data / "settings.json").read_bytes()
