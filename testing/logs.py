"""The log lines that a test captures."""

import structlog

LogLines = list[structlog.typing.EventDict]
