r"""Branch and bound for the shortest word that a model with several heads decides wrongly.

With Z_H of the last head as the unit, r_h = Z_h/Z_H, and any constants c_h,

    Z_H (f - sum_h c_h + 1) = sum_h (N_h - c_h Z_h)/r_h,

which is linear in the counts n once the r_h are known. While each r_h is only known to lie in an interval, a wrong
word satisfies linear inequalities A n <= 0: r_low Z_H <= Z_h <= r_high Z_H, and the one above with the more favourable
end of the interval for every coefficient, for several c (with c_h = N_h/Z_h of a word the error is of second order
near it). Any multipliers y, z >= 0 then bound the length of every wrong word from below:

    sum_j n_j >= z + sum_j n_j (1 - z + (y A)_j) >= z + sum_j min over allowed n_j of n_j (1 - z + (y A)_j).

Best-first search splits intervals of r (in ln r) and ranges of n_j. A linear program proposes y and z; the bound
itself is evaluated here together with a bound on its rounding, so the result does not rest on a solver's tolerance.
"""

import heapq
import math
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from .errors import InputError
from .exact_signs import exponentials, score_sign
from .label_cubes import label_cubes

UNIT_ROUNDOFF = 2.0**-53
LONGEST = 1e15  # counts are exact in floats
FRACTION = 1e-7  # farther than this from a whole number is not one


@dataclass(frozen=True)
class Node:
    """Wrong words of label y with low <= n <= high (inf: no limit) and r_low <= Z_h/Z_H <= r_high for h < H."""

    y: int
    low: np.ndarray
    high: np.ndarray
    r_low: np.ndarray
    r_high: np.ndarray


class Search:
    """The shortest word of ``language`` that the heads (alpha, beta), each (H, d), decide wrongly.

    After `run`, ``witness`` is the counts of a wrong word; `run` returns the length up to which every word is right.
    """

    def __init__(self, language, alpha, beta, nodes):
        if np.any(np.ptp(alpha, axis=1) > 600):
            raise InputError("alpha of each head must span at most 600 to certify several heads")
        # the last head is the unit: the one from which the others' scores differ least
        spread = [sum(np.ptp(row - unit) for row in alpha) for unit in alpha]
        order = np.roll(np.arange(len(alpha)), -1 - int(np.argmin(spread)))
        self.language, self.alpha, self.beta, self.nodes = language, alpha[order], beta[order], nodes
        self.heads, self.d = alpha.shape
        # correctly rounded: a relative error of at most one unit roundoff
        self.u = np.array([[float(low + high) / 2 for low, high in exponentials(row, 30)] for row in self.alpha])
        self.margin = 1e-12 * (1 + np.abs(beta).max(axis=1).sum())  # beyond it floats give the sign of f
        self.witness = None
        self.wrong_length = math.inf  # of the shortest wrong word found

    def run(self):
        self._try(np.eye(self.d))
        cubes = [(y, *cube) for y in (1, -1) for cube in label_cubes(self.language, y)]
        roots = [self._root(*part) for cube in cubes for part in self._by_presence(*cube)]
        roots = [node for node in roots if node.high.any()]
        for node in roots:
            self._simple_words(node)
        heap, order = [], count()
        for node in roots:
            self._push(heap, order, node, None)
        for _ in range(self.nodes):
            if not heap or heap[0][0] >= self.wrong_length:
                break
            _, _, node, word = heapq.heappop(heap)
            for child in self._split(node, word):
                self._push(heap, order, child, word)
        if self.witness is None:
            raise ArithmeticError(f"no wrong word was found in {self.nodes} nodes: allow more")
        return min([self.wrong_length] + [bound for bound, *_ in heap]) - 1

    def _by_presence(self, y, present, absent):
        """Cut words without a letter that must occur by the first letter of S that does: lengths need a unit."""
        if present:
            return [(y, present, absent)]
        free = [j for j in self.language.letters if j not in absent]
        return [(y, (j,), (*absent, *free[:i])) for i, j in enumerate(free)] + [(y, (), self.language.letters)]

    def _root(self, y, present, absent):
        low, high = np.zeros(self.d), np.full(self.d, np.inf)
        low[list(present)] = 1
        high[list(absent)] = 0
        if not high.any():  # the empty word
            return Node(y, low, high, np.ones(self.heads - 1), np.ones(self.heads - 1))
        ratio = self.u[:-1, high > 0] / self.u[-1, high > 0]
        outwards = 8 * UNIT_ROUNDOFF
        return Node(y, low, high, ratio.min(axis=1) * (1 - outwards), ratio.max(axis=1) * (1 + outwards))

    # ---- words

    def _values(self, words):
        """N_h/Z_h of (N, d) words: (N, H)."""
        masses = words[:, None, :] * self.u
        return (masses * self.beta).sum(-1) / masses.sum(-1)

    def _margins(self, words):
        """y f of (N, d) words, in floats: wrong words are those <= 0."""
        labels = self.language.labels(words[:, self.language.letters] > 0)
        return labels * (self._values(words).sum(-1) - 1)

    def _try(self, words):
        """Keep the shortest wrong one of the words, if it is shorter than what is known."""
        lengths = words.sum(axis=1)
        words = words[(lengths >= 1) & (lengths < self.wrong_length)]
        margins = self._margins(words) if len(words) else ()
        for i in np.argsort(words.sum(axis=1), kind="stable"):
            if margins[i] > self.margin:
                continue
            counts = tuple(int(n) for n in words[i])
            if margins[i] >= -self.margin:  # too close for floats
                label = self.language.labels(words[i, list(self.language.letters)] > 0)
                if label * score_sign(self.alpha, self.beta, counts) > 0:
                    continue
            self.witness, self.wrong_length = counts, sum(counts)
            return

    def _simple_words(self, node):
        """Words with every letter that must be present once and one letter 1, 2, 4, ... times more, then bisected."""
        powers = 2.0 ** np.arange(50)
        letters = np.flatnonzero(node.high > 0)
        masses = self.u[:, letters, None] * powers  # (H, letters, powers)
        total = (self.u @ node.low)[:, None, None] + masses
        value = ((self.u * self.beta) @ node.low)[:, None, None] + masses * self.beta[:, letters, None]
        present = node.low + np.eye(self.d)[letters] > 0
        labels = self.language.labels(present[:, self.language.letters])
        wrong = labels[:, None] * ((value / total).sum(axis=0) - 1) <= 0
        first = np.where(wrong.any(axis=1), wrong.argmax(axis=1), len(powers))
        for i in np.argsort(first, kind="stable")[:3]:
            if first[i] < len(powers):
                self._shorten(node.low, letters[i], powers[first[i]])

    def _shorten(self, word, j, high):
        """Bisect the number of further letters j from ``high`` down, as if wrong words came last."""
        low, unit = 0.0, np.eye(self.d)[j]
        while high - low > 1:
            middle = np.floor((low + high) / 2)
            low, high = (low, middle) if self._margins((word + middle * unit)[None])[0] <= 0 else (middle, high)
        self._try(word + np.maximum(high + np.arange(-1, 3), 0)[:, None] * unit)

    def _round(self, node, word):
        """Try whole words near a real one."""
        smallest = word[word > 1e-9].min(initial=np.inf)
        candidates = [np.round(word), np.ceil(word - 1e-9), np.floor(word + 1e-9)]
        if smallest < 1:
            candidates += [np.round(word / smallest), np.ceil(word / smallest - 1e-9)]
        near = np.repeat(candidates, 3, axis=0)
        near[np.arange(len(near)), near.argmax(axis=1)] += np.tile([-1, 0, 1], len(candidates))
        self._try(np.clip(near, node.low, np.minimum(node.high, LONGEST)))

    # ---- bounds

    def _rows(self, node, word):
        """A with A n <= 0 for every wrong word of the node, and bounds on the rounding of its entries."""
        unit, rows, sizes = self.u[-1], [], []
        for u, low, high in zip(self.u, node.r_low, node.r_high, strict=False):
            rows += [u - high * unit, low * unit - u]
            sizes += [u + high * unit, low * unit + u]
        allowed = self.beta[:, node.high > 0]
        r_low, r_high = np.append(node.r_low, 1.0)[:, None], np.append(node.r_high, 1.0)[:, None]
        constants = [allowed.min(axis=1), allowed.max(axis=1), (allowed.min(axis=1) + allowed.max(axis=1)) / 2]
        if word is not None:
            constants.append(self._values(word[None])[0])
        for c in constants:
            v = node.y * self.u * (self.beta - c[:, None])
            rest = node.y * (c.sum() - 1) * unit
            rows.append((v / np.where(v > 0, r_high, r_low)).sum(axis=0) + rest)
            sizes.append(
                (self.u * (np.abs(self.beta) + np.abs(c)[:, None]) / r_low).sum(axis=0) + (1 + np.abs(c).sum()) * unit
            )
        rows, sizes = np.array(rows), np.array(sizes)
        scale = np.maximum(np.abs(rows[:, node.high > 0]).max(axis=1, keepdims=True), 1e-290)
        return rows / scale, (self.heads + 8) * UNIT_ROUNDOFF * sizes / scale

    def _push(self, heap, order, node, word):
        """Bound the node; keep it unless it cannot hold a shorter wrong word."""
        if max(node.low.sum(), 1) >= self.wrong_length:
            return
        A, rounding = self._rows(node, word)
        (y, z), word = self._propose(node, A)
        bound = max(self._bound(node, A, rounding, y, z), 1, int(node.low.sum()))
        if bound >= self.wrong_length:
            return
        if word is not None:
            self._round(node, word)
        if bound < self.wrong_length:
            heapq.heappush(heap, (bound, next(order), node, word))

    def _propose(self, node, A):
        """Multipliers y, z of the best bound, and the real word that attains it (None if there is none).

        A linear program in y, z and, for each letter j with a finite range, v_j = min over it of n_j c_j,
        c_j = 1 - z + (y A)_j; the value is capped, since it is infinite where there is no word.
        """
        from scipy.optimize import linprog

        finite = np.flatnonzero(np.isfinite(node.high) & (node.high > 0))
        free = np.flatnonzero(np.isinf(node.high))
        rows, size = len(A), len(A) + 1 + len(finite)
        form = np.zeros((self.d, size))  # c_j - 1
        form[:, :rows], form[:, rows] = A.T, -1
        pick = np.eye(size)[rows + 1 :]  # v_j
        low, high = node.low[finite], node.high[finite]
        value = node.low[free] @ form[free]
        value[rows:] += 1
        cap = min(4.0 * self.wrong_length, LONGEST) - node.low[free].sum()
        left = np.vstack([-form[free], pick - low[:, None] * form[finite], pick - high[:, None] * form[finite], value])
        right = np.concatenate([np.ones(len(free)), low, high, [cap]])
        bounds = [(0, None)] * (rows + 1) + [(None, None)] * len(finite)
        result = linprog(-value, left, right, bounds=bounds, method="highs")
        if result.x is None:
            return (np.zeros(rows), 0.0), None
        multipliers = np.maximum(result.x[: rows + 1], 0)
        dual = np.maximum(-result.ineqlin.marginals, 0)
        word = np.zeros(self.d)
        word[free] = node.low[free] + dual[: len(free)]
        low_dual, high_dual = dual[len(free) : -1].reshape(2, -1)
        word[finite] = low * low_dual + high * high_dual
        return (multipliers[:-1], multipliers[-1]), word if dual[-1] < 0.5 and word.any() else None

    def _bound(self, node, A, rounding, y, z):
        """Lower bound on the length of the node's wrong words, at most that of the best known one; any y, z >= 0 do."""
        high = np.where(np.isinf(node.high), min(self.wrong_length, 1e300), node.high)
        c = 1 - z + y @ A
        c -= y @ rounding + (len(y) + 4) * UNIT_ROUNDOFF * (1 + z + y @ np.abs(A))
        terms = np.where(c >= 0, node.low * c, high * c)[node.high > 0]
        total = z + terms.sum()
        total -= 2 * (len(terms) + 2) * UNIT_ROUNDOFF * (z + np.abs(terms).sum())
        return math.ceil(min(max(total, 0.0), LONGEST))

    # ---- branching

    def _split(self, node, word):
        """Two nodes that together hold every wrong word of this one; none if the node's only word has been tried."""
        room = np.minimum(node.high, min(self.wrong_length, LONGEST)) - node.low
        if not np.any(room > 0):
            self._try(node.low[None])
            return []
        if word is None:
            word = np.where(room > 0, node.low + room / 2, node.low)
        masses = word * self.u
        total = masses.sum(axis=1)
        r = np.clip(total[:-1] / total[-1], node.r_low, node.r_high)
        width = np.log(node.r_high / node.r_low)
        # what the interval of r_h may add to f: its width times the mean distance of beta from its mean
        error = width * (masses * np.abs(self.beta - self._values(word[None]).T)).sum(axis=1)[:-1] / total[:-1]
        fraction = np.where(room > 0, np.abs(word - np.round(word)), 0)
        if not node.low.any() and fraction.max() > FRACTION:  # any multiple of the word will do: give lengths a unit
            return self._split_letter(node, int(np.where(fraction > FRACTION, word, np.inf).argmin()), word)
        # a letter changes f by about 1/length in the words sought: what matters less can wait for whole counts
        smallest = self.margin if fraction.max() <= FRACTION else 0.2 / self.wrong_length
        if self._margins_real(node, word) > self.margin and error.max() > smallest:
            h = int(error.argmax())
            middle = np.log(node.r_low[h]) + width[h] * np.clip(np.log(r[h] / node.r_low[h]) / width[h], 0.2, 0.8)
            return self._split_ratio(node, h, np.exp(middle))
        below_one = (fraction > FRACTION) & (word < 1)
        if below_one.any():
            return self._split_letter(node, int((below_one * fraction).argmax()), word)
        if fraction.max() > FRACTION:
            return self._split_letter(node, int(fraction.argmax()), word)
        return self._split_letter(node, int(room.argmax()), np.round(word))

    def _margins_real(self, node, word):
        return node.y * (self._values(word[None]).sum() - 1)

    def _split_ratio(self, node, h, at):
        low, high = node.r_low.copy(), node.r_high.copy()
        low[h] = high[h] = at
        return [replace(node, r_high=high), replace(node, r_low=low)]

    def _split_letter(self, node, j, word):
        low, high = node.low.copy(), node.high.copy()
        high[j] = np.clip(np.floor(word[j]), node.low[j], node.high[j] - 1)
        low[j] = high[j] + 1
        return [replace(node, high=high), replace(node, low=low)]
