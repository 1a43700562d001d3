"""What follows a letter and a colon, or two backslashes, and is no path: TeX, escapes, expressions.

Knows what such things begin with; knows nothing of paths.
"""

from itertools import groupby
from operator import itemgetter


def _any_of(words: str) -> str:
    """Write an alternation that decides by the first letter."""
    by_letter = groupby(sorted(words.split()), key=itemgetter(0))
    return "|".join(
        f"{letter}(?:{'|'.join(word[1:] for word in group)})" for letter, group in by_letter
    )


_COMMANDS = _any_of(
    "math[a-z]{2,4} text[a-z]{0,2} frac sqrt sum int prod lim to in mapsto times cdot ldots dots cdots alpha "
    "beta gamma delta epsilon theta lambda mu pi rho sigma phi psi omega infty forall exists leftarrow "
    "rightarrow longleftarrow longrightarrow Rightarrow Leftarrow quad qquad left right begin end item "
    "hline hspace vspace label ref cite emph R N Z Q C partial nabla leq? geq? neq? neg land lor wedge "
    "vee sin cos tan log ln vec hat bar tilde overline underline operatorname"
)
_COMMAND = rf"(?:(?:{_COMMANDS})(?![A-Za-z])|[A-Za-z]+(?=[{{^]|_[{{0-9a-z](?![A-Za-z0-9])))"
_FORMULA = rf"{_COMMAND}(?:\\{{1,2}}{_COMMAND})*+(?!_?[A-Za-z0-9]*[\\/]|\.\w)"
LINE_ESCAPE = r"[nrt](?![a-z0-9_-])"
NO_FOLDER = rf"(?:{LINE_ESCAPE}|[,;>{{|]|[!+](?!\w\w)|[swdSWD](?=[+*?\])}}|])|{_FORMULA})"
NO_HOST = rf"(?:x[0-9a-fA-F]{{2}}|u[0-9a-fA-F]{{4}}|[0-7]{{3}}|[!-#%-/@^`~=]|{_FORMULA})"
