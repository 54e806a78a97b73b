"""A matplotlib figure as SVG inside a page: text stays text, ids are its own, colours follow the page's scheme."""

import io
import re
import xml.etree.ElementTree as ElementTree

import numpy as np

from ..figures import RC
from .markup import Markup, element

TOLERANCE = 0.1  # points of 1/72 inch: a curve may be drawn this far, a twelfth of its width, beside itself
LONG = 20  # vertices from which a path is thinned
OPTIONS = {"svg.fonttype": "none", "font.sans-serif": ["DejaVu Sans", "Verdana"]}  # which are equally wide
DROPPED = {"metadata", "style"}


def inline_svg(figure, key, title, description):
    """The figure as an ``svg`` element, an image to screen readers with a title and a description.

    Parameters
    ----------
    figure : matplotlib figure
    key : begins all ids of the figure, so that several figures fit in one page
    """
    import matplotlib

    file = io.StringIO()
    with matplotlib.rc_context(RC | OPTIONS | {"svg.hashsalt": key}):
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    root = ElementTree.fromstring(file.getvalue())
    _strip(root)
    _own_ids(root, key)
    paper = next(root.iter("image"), None) is not None  # the colours of pixels do not follow the scheme
    for node in root.iter():
        if "d" in node.attrib:
            node.set("d", thinned_path(node.get("d")))
        if "style" in node.attrib:
            node.set("style", _compact_style(node.get("style"), paper))
        node.tail = None if node.tag != "tspan" else node.tail
        if node.text is not None and not node.text.strip():
            node.text = None
    drawn = Markup("".join(ElementTree.tostring(child, encoding="unicode") for child in root))
    return element("svg", element("title", title, id=f"{key}-title"), element("desc", description, id=f"{key}-desc"),
                   drawn, viewBox=root.get("viewBox"), role="img", aria_labelledby=f"{key}-title {key}-desc",
                   class_="paper" if paper else None)


def _strip(root):
    """Remove metadata and namespaces."""
    for parent in list(root.iter()):
        parent.tag = parent.tag.split("}")[-1]
        for name in list(parent.attrib):
            parent.set(name.split("}")[-1], parent.attrib.pop(name))
        for child in list(parent):
            if child.tag.split("}")[-1] in DROPPED:
                parent.remove(child)


def _own_ids(root, key):
    """Number the ids that are referred to, behind the key; drop the others. (Theirs change with a path's last bit.)"""
    used = set(re.findall(r"#([\w-]+)", " ".join(value for node in root.iter() for name, value in node.attrib.items()
                                                 if name != "style" or "url(" in value)))
    numbered = {name: f"{key}-{i}" for i, name in
                enumerate(node.get("id") for node in root.iter() if node.get("id") in used)}
    for node in root.iter():
        if (name := node.attrib.pop("id", None)) in used:
            node.set("id", numbered[name])
        for attribute, value in node.attrib.items():
            if attribute == "href" and value.startswith("#"):
                node.set(attribute, f"#{numbered[value[1:]]}")
            elif "url(#" in value:
                node.set(attribute, re.sub(r"url\(#([\w-]+)\)", lambda m: f"url(#{numbered[m[1]]})", value))


def _compact_style(style, paper):
    style = re.sub(r"\s*([:;])\s*", r"\1", style)
    return style if paper else re.sub(r"#[0-9a-f]{6}\b", _themed, style)


def _themed(match):
    """Greys between the page's ink and its paper; colours have names that the page may give another shade."""
    colour = match[0][1:]
    level = {colour[i : i + 2] for i in (0, 2, 4)}
    if len(level) > 1:
        return f"var(--c{colour},#{colour})"
    ink = round(100 * (1 - int(level.pop(), 16) / 255))
    return {100: "var(--ink)", 0: "var(--paper)"}.get(ink, f"color-mix(in srgb,var(--ink) {ink}%,var(--paper))")


def thinned_path(d):
    """SVG path data with two decimals, polylines without the vertices that lie on the lines between others.

    >>> thinned_path("M 0 0 L 1 0.01 L 2 0 " + "".join(f"L {x} 0 " for x in range(3, 90)))
    'M0 0L89 0'
    """
    d = " ".join(d.split())
    if re.search(r"[^-+.eMLz\d\s]", d):
        return re.sub(r" ?([A-Za-z]) ?", r"\1", re.sub(r"-?\d*\.\d+", lambda m: _short(float(m[0])), d))
    pieces = []
    for part in filter(None, d.split("M")):
        points = np.array(re.sub("[Lz]", " ", part).split(), dtype=float).reshape(-1, 2)
        if len(points) > LONG:
            points = thinned(points)
        pieces.append("M" + "L".join(f"{_short(x)} {_short(y)}" for x, y in points) + "z" * part.rstrip().endswith("z"))
    return "".join(pieces)


def thinned(points):
    """Ramer, Douglas and Peucker: the fewest halvings such that no vertex is farther than ``TOLERANCE`` from a line."""
    kept = np.zeros(len(points), dtype=bool)
    kept[[0, -1]] = True
    spans = [(0, len(points) - 1)]
    while spans:
        first, last = spans.pop()
        if last - first < 2:
            continue
        start, along = points[first], points[last] - points[first]
        offset = points[first + 1 : last] - start
        square = along @ along
        share = np.clip(offset @ along / square, 0, 1) if square else np.zeros(len(offset))
        distance = np.hypot(*(offset - share[:, None] * along).T)
        farthest = int(np.argmax(distance))
        if distance[farthest] > TOLERANCE:
            middle = first + 1 + farthest
            kept[middle] = True
            spans += [(first, middle), (middle, last)]
    return points[kept]


def _short(value):
    return f"{value:.2f}".rstrip("0").rstrip(".")
