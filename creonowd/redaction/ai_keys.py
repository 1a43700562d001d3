"""The keys of AI vendors, Western and Chinese.

Knows prefixes and lengths; a key that only its label gives away is not known here.
"""

from creonowd.redaction.rules import (
    ALNUM,
    END,
    HEX,
    WORD,
    Rule,
    token,
    unless_a_name,
    whole,
    with_head,
)

UUID = f"{HEX}{{8}}-{HEX}{{4}}-{HEX}{{4}}-{HEX}{{4}}-{HEX}{{12}}"


RULES = (
    token("anthropic_api_key", "sk-ant-", rf"{WORD}{{20,400}}+"),
    token("openrouter_api_key", "sk-or-", rf"(?:v\d-)?{ALNUM}{{32,128}}+"),
    token("langfuse_secret_key", "sk-lf-", UUID),
    Rule("openai_api_key_sk", ("sk-",), rf"sk-({WORD}{{16,400}}+)", unless_a_name),
    token("openai_session_sess", "sess-", rf"{ALNUM}{{40}}"),
    token("google_api_key", "AIza", rf"{WORD}{{35,39}}+"),
    token("google_api_key", "AQ.", rf"Ab8{WORD}{{40,60}}+"),
    token("google_oauth_token", "ya29.", rf"{WORD}{{20,400}}+"),
    token("google_oauth_token", "1//0", rf"{WORD}{{40,120}}+"),
    token("google_oauth_secret", "GOCSPX-", rf"{WORD}{{24,40}}+"),
    token("huggingface_token", "hf_", rf"{ALNUM}{{30,42}}+"),
    token("huggingface_token", "api_org_", rf"{ALNUM}{{30,42}}+"),
    token("groq_api_key", "gsk_", rf"{ALNUM}{{40,64}}+"),
    token("xai_api_key", "xai-", rf"{ALNUM}{{60,128}}+"),
    token("perplexity_api_key", "pplx-", rf"{ALNUM}{{40,64}}+"),
    token("replicate_api_token", "r8_", rf"{ALNUM}{{30,48}}+"),
    token("langsmith_api_key", "lsv2_", rf"(?:pt|sk)_{HEX}{{32}}_{HEX}{{10}}"),
    token("langsmith_api_key", "ls__", rf"{HEX}{{32}}"),
    token("cerebras_api_key", "csk-", rf"{ALNUM}{{40,64}}+"),
    token("nvidia_api_key", "nvapi-", rf"{WORD}{{50,100}}+"),
    token("together_api_key", "tgp_v1_", rf"{WORD}{{30,80}}+"),
    token("fireworks_api_key", "fw_", rf"{ALNUM}{{20,40}}+"),
    token("jina_api_key", "jina_", rf"{WORD}{{40,80}}+"),
    token("tavily_api_key", "tvly-", rf"{WORD}{{20,64}}+"),
    token("pinecone_api_key", "pcsk_", rf"{ALNUM}{{4,10}}_{ALNUM}{{40,80}}+"),
    token("elevenlabs_api_key", "sk_", rf"{HEX}{{48}}"),
    token("llamacloud_api_key", "llx-", rf"{ALNUM}{{40,64}}+"),
    token("coze_access_token", "pat_", rf"{ALNUM}{{60,68}}+"),
    token("qianfan_api_key", "bce-v3/ALTAK", rf"-?{ALNUM}{{16,32}}/{HEX}{{32,64}}+"),
    token("qianfan_access_key", "ALTAK", rf"-?{ALNUM}{{16,40}}+"),
    token("tencent_secret_id", "AKID", rf"{ALNUM}{{28,40}}+"),
    Rule("alibaba_access_key_id", ("ltai",), rf"LTAI(?!x{{4}}){ALNUM}{{12,26}}+{END}", whole),
    token("volcengine_access_key", "AKLT", rf"{ALNUM}{{30,70}}+"),
    Rule(
        "zhipu_api_key", (), rf"\.{ALNUM}{{16}}{END}", with_head(f"{HEX}{{32}}", 32, telling=True)
    ),
)
