"""Where the secrets stand is told so exactly that a caller can take them out piece by piece."""

from hypothesis import given
from hypothesis import strategies as st

from creonowd.redaction import PLACEHOLDER, Redactor, redact

SECRETS = (
    "sk-proj-Zq8Lw2Xv9Rt4Yb7Nc1Md6Kf3",
    "ghp_Zq8Lw2Xv9Rt4Yb7Nc1Md6Kf3Hs5Jg0Pd2Xa",
    "AKIAZQ8LW2XV9RT4YB7N",
    "password=hunter2Zq8",
    "密码：Zq8Lw2Xv9",
    "/home/mei/稿件/第一章.md",
    "C:\\Users\\mei\\notes.txt",
    "https://mei:s3cr3tZq8@example.com/x",
    PLACEHOLDER,
)
TEXTS = st.lists(
    st.one_of(
        st.sampled_from(SECRETS),
        st.text(max_size=6),
        st.sampled_from([" ", "\n", "，", '"', "\\n"]),
    ),
    max_size=12,
).map("".join)


@given(TEXTS)
def test_taking_out_every_stretch_is_redacting(text: str) -> None:
    stretches = Redactor().find(text)

    pieces: list[str] = []
    done = 0
    for stretch in stretches:
        assert done <= stretch.start < stretch.end <= len(text)
        pieces += (text[done : stretch.start], PLACEHOLDER)
        done = stretch.end
    assert "".join([*pieces, text[done:]]) == redact(text).text


def test_a_stretch_names_its_pattern_and_its_place() -> None:
    text = f"键是 {SECRETS[1]}。"

    (stretch,) = Redactor().find(text)

    assert text[stretch.start : stretch.end] == SECRETS[1]
    assert stretch.pattern_id.startswith("github_token")
