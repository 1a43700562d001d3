"""What `doctor` found about one thing. Knows words; looks at nothing."""

from creonowd.model import Model

OK, NOTE, BAD = "ok", "note", "bad"


class Finding(Model):
    """One thing that was looked at; a remedy where something is wrong."""

    part: str
    state: str
    found: str
    remedy: str = ""
