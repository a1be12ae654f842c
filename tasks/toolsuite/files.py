"""What the file tools compute in Python, since CEL has no patterns to count by."""

import re


def count_words(args, world, _clock):
    """Words, lines and characters of a file; what a hyphen or an apostrophe joins is one word."""
    text = world["files"][args["path"]]["text"]
    return {
        "path": args["path"],
        "words": len(re.findall(r"\w+(?:['\u2019-]\w+)*", text)),
        "lines": text.count("\n") + 1,
        "characters": len(text),
    }, world
