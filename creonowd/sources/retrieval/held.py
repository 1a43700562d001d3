"""What editors hold of a project, as the index wants to know it."""

from collections.abc import Callable

from creonowd.model import Model
from creonowd.workspace.documents import Documents, OpenDocument


class Held(Model):
    """A document open in an editor: its text, and by what to tell one state from the next."""

    mark: str
    text: Callable[[], str]


def held(documents: Documents, project_id: str) -> dict[str, Held]:
    """Give what is open of a project; the texts are put together only when asked for."""
    return {path: _held(document) for path, document in documents.opened(project_id).items()}


def _held(document: OpenDocument) -> Held:
    return Held(mark=f"open {document.turn}", text=lambda: document.buffer.text)
