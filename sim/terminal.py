"""Colours on terminals: verdicts and statuses in the cells of tables; nowhere else, and not with NO_COLOR."""

import os
import re
import sys
from contextlib import contextmanager

GREEN, YELLOW, RED = "32", "33", "31"
WORDS = {
    GREEN: ("match", "ok", "done", "proved", "certified", "enumerated", "simulated"),
    YELLOW: ("near", "skipped", "missing"),
    RED: ("off", r"(?:\d+/\d+ )?diverged", "refuted", "damaged"),
}
COLOUR_OF = [(re.compile(rf"(?m)(?<=  )({'|'.join(words)})(?=  |$)"), code) for code, words in WORDS.items()]


def coloured(text):
    """The text with colour codes around words that are whole cells of a table.

    >>> coloured("O     match  off by one")
    'O     \\x1b[32mmatch\\x1b[0m  off by one'
    """
    for cell, code in COLOUR_OF:
        text = cell.sub(f"\x1b[{code}m\\1\x1b[0m", text)
    return text


class _Coloured:
    """Standard output whose text is coloured on its way; all else as it was."""

    def __init__(self, stream):
        self._stream = stream

    def write(self, text):
        return self._stream.write(coloured(text))

    def __getattr__(self, name):
        return getattr(self._stream, name)


@contextmanager
def colours():
    """Within it, what is printed is coloured if standard output is a terminal that shows colours."""
    plain = sys.stdout
    if plain is not None and plain.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb":
        sys.stdout = _Coloured(plain)
    try:
        yield
    finally:
        sys.stdout = plain
