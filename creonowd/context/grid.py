"""The coarse grid on which the window begins, so that writing does not churn the prompt.

A pure function of text and step. Knows no tokens.
"""

from creonowd.tokens.boundaries import grapheme_ceiling, paragraphs, sentences

LONGEST_QUERY = 2000


def snap(text: str, mark: int, step: int, cursor: int) -> int:
    """Move a multiple of the step on to the next paragraph, else sentence, within one step.

    What lies at the cursor or behind it is not looked at.
    """
    if mark <= 0:
        return 0
    for boundaries in (paragraphs, sentences):
        found = next(boundaries(text, mark - 1, min(mark + step, cursor - 1)), None)
        if found is not None:
            return found
    return grapheme_ceiling(text, mark)


def query(text: str, cursor: int, step: int) -> str:
    """Tell what retrieval asks with: the text up to the last multiple of the step.

    Within the first step of a document, its whole paragraphs so far.
    """
    end = cursor // step * step
    if end == 0:
        end = max(paragraphs(text, 0, cursor), default=0)
    return text[max(0, end - LONGEST_QUERY) : end]
