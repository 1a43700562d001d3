"""Back ends that an author adds by name alone: address, key variable, and a model to begin with.

As of 2026-11. Addresses and names of models are the providers' own; `--model` names another.
"""

from creonowd.settings import Backend

PRESETS: dict[str, Backend] = {
    "openai": Backend(model="gpt-5", key_variable="OPENAI_API_KEY"),
    "anthropic": Backend(
        provider="anthropic", model="claude-sonnet-4-6", key_variable="ANTHROPIC_API_KEY"
    ),
    "gemini": Backend(
        model="gemini-flash-latest",
        base_url="https://generativelanguage.googleapis.com/v1beta/openai",
        key_variable="GEMINI_API_KEY",
    ),
    "deepseek": Backend(
        model="deepseek-chat",
        base_url="https://api.deepseek.com/v1",
        key_variable="DEEPSEEK_API_KEY",
    ),
    "qwen": Backend(
        model="qwen-plus",
        base_url="https://dashscope.aliyuncs.com/compatible-mode/v1",
        key_variable="DASHSCOPE_API_KEY",
    ),
    "glm": Backend(
        model="glm-5.2",
        base_url="https://open.bigmodel.cn/api/paas/v4",
        key_variable="ZHIPUAI_API_KEY",
    ),
    "kimi": Backend(
        model="kimi-k3",
        base_url="https://api.moonshot.cn/v1",
        key_variable="MOONSHOT_API_KEY",
    ),
    "openrouter": Backend(
        base_url="https://openrouter.ai/api/v1", key_variable="OPENROUTER_API_KEY"
    ),
    "ollama": Backend(provider="ollama", base_url="http://127.0.0.1:11434"),
    "lmstudio": Backend(base_url="http://127.0.0.1:1234/v1"),
    "llamacpp": Backend(base_url="http://127.0.0.1:8080/v1"),
}
