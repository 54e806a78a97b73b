"""Which claims each section of the theory chapter lists: its ``{claims}`` blocks name the beginnings of ids.

A claim goes to the block with the longest name that fits it; what fits none goes to the block ``others``.
"""

import re

BLOCK = re.compile(r"```\{claims\} *([^\n]*)\n")
OTHERS = "others"


def assignment(page, ids):
    """{names of a block: ids of the claims it lists}, in the order of the page.

    >>> assignment("```{claims} a a.b\\n```\\n```{claims} others\\n```\\n", ["a.b.c", "x.y", "a.c"])
    {'a a.b': ['a.b.c', 'a.c'], 'others': ['x.y']}
    """
    blocks = {names: [] for names in BLOCK.findall(page)}
    for id in ids:
        fits = [(len(name), names) for names in blocks for name in names.split() if f"{id}.".startswith(f"{name}.")]
        blocks[max(fits)[1] if fits else OTHERS].append(id)
    return blocks
