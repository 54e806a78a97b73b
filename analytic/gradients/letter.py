"""Loss, gradient and gradient descent of the letter model (occurrence, OR, AND, any language of letters).

A word with n_j copies of letter j is scored by H heads of softmax attention over its positions,

    a^h_j = n_j e^{alpha^h_j} / sum_i n_i e^{alpha^h_i},   o^h = sum_j a^h_j beta^h_j,   f = sum_h o^h - 1,

and the loss is the mean over words of (f - y)^2, without a factor 1/2. `letter_twin` says the same in numpy.

How it is computed
------------------
With e = exp(alpha - max alpha), each head needs two products with the counts X and two with their transpose:

    Z = X e,  S = X (e beta),  o = S / Z,        c = (f - y) / Z,  G = X^T c,  K = X^T (c o),
    d loss / d beta = (2/N) e G,                 d loss / d alpha = (2/N) e (beta G - K).

That is 4 N d multiply-adds a head and step. Words are cut into blocks of ROWS, which stay in the nearest cache from
the first pair of products to the second; inside a block the counts lie letter after letter, so that SIMD lanes are
words and nothing is summed across lanes before the end of the step:

    codes:   block 0                                                      block 1 ...
             letters 0..4            letters 5..9            ...
             word 0, ..., ROWS - 1   word 0, ..., ROWS - 1
    sums:    Z of word 0, ..., ROWS - 1, then S of the same words         (later c and c o in their place)
    totals:  letter 0: G in LANES partial sums, K in LANES partial sums   letter 1 ...

Five counts share the 64 bits of a code, 11 bits each: a float with 4 bits of exponent and 7 of mantissa.

    bit 63      55         44         33         22         11        0
        unused  | letter 0 | letter 1 | letter 2 | letter 3 | letter 4 |

Shifted to the place of letter 0, with all other bits cleared, a count n <= 255 *is* the float64 n 2^-1022, exactly.
A shift and a mask thus replace the conversion from integers, which would take as long as the multiply-adds. The power
of two is made up for, exactly: half of it in e and e beta, half in Z and so in c. Larger counts are written in base
256, and each digit has letters of its own, whose e is 256, 256^2, ... times the first: a block then holds the letters
once per digit.

Words with few of the letters are kept as lists of (letter, count) instead, and treated one by one. So is everything
while some scores lie so far apart that exp(alpha - max alpha) could underflow in a word without the best letter:
then each word subtracts the largest score among its own letters; and while all output weights of a head are so small
that S could underflow. The choice depends on the current state only.

Many words are cut into parts, which threads evaluate side by side; loss and gradients are added part after part. How
many parts depends on the words only, never on the threads, so that any machine computes the same bits. Codes that no
cache holds from one step to the next are asked for ahead: while the second pair of products works on one block from
the nearest cache, memory delivers the next.
"""

import math
import os
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..errors import InputError, rate, real, whole
from ..jit import jit
from .prefetch import LINE, ask_ahead

ROWS = 128  # words in a block
LANES = 16  # partial sums of one total; LLVM vectorises no loop of fewer than 16 rounds behind an alias check
GROUP = 5  # letters in a code, treated together: Z and S, or G and K, are loaded and stored once for all of them

FIELD = 11  # bits of a count in a code
MASK = np.uint64(((1 << FIELD) - 1) << 45)  # letter 0: the lowest 4 bits of a float64's exponent, 7 of its mantissa
UNIT = 2.0**-1022  # what a count of one stands for there
HALF = 2.0**511  # UNIT HALF HALF = 1
BASE = 256  # counts below it fill one field
LARGEST = 2**31 - 1  # count, and length of a sampled word

SPARSE_DENSITY = 0.025  # below this share of nonzero counts, lists of letters are faster
FAR_SCORES = 200.0  # within them and FAR_WEIGHTS nothing overflows: 1 / Z <= e^200 / (UNIT HALF) < 2^800,
FAR_WEIGHTS = 1e30  # and f - y and o, which multiply it, stay near 2^100; from 1 / FAR_WEIGHTS on no S underflows

LARGE = 4e6  # words times letters from which on a run is cut into parts: a step of 0.3 ms, 0.05 of which threads cost
PARTS = 16  # of the words, at most
PART_BLOCKS = 24  # blocks in a part, at least: each part takes the exponentials and gathers the gradients anew
THREADS = os.cpu_count() or 1  # they share the parts
CACHE = 24e6  # bytes of codes beyond which they are asked for ahead; where a cache still holds them that costs 10%

CHUNK_COUNTS = 1 << 18  # counts tallied at a time while words are made
LONG_WORD = 40  # words longer than this times d are drawn by binomials, the others letter by letter

Layout = namedtuple("Layout", "codes digits starts letters times labels n_words of d")  # `of`: words in all parts
Work = namedtuple("Work", "f d_alpha d_beta e s sums totals losses residual letters times weights weight_sums outputs")


# ---- words -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Words:
    """An immutable set of words: counts of the letters, and labels.

    Make one with `Words.from_counts` or `sample_words`.

    Attributes
    ----------
    n_words, d : int
        number of words and of letters
    labels : (n_words,) int8, read-only
        +1 or -1
    path : str
        ``"packed"``, ``"wide"`` (the same in several digits: some count is above 255) or ``"sparse"`` (lists of
        letters: fewer than 2.5% of the counts are positive)
    nbytes : int
        memory held

    Examples
    --------
    >>> words = Words.from_counts([[2, 0, 1], [0, 1, 0]], [1, -1])
    >>> words.n_words, words.d, words.path
    (2, 3, 'packed')
    >>> words.counts()
    array([[2, 0, 1],
           [0, 1, 0]], dtype=int32)
    """

    _layout: Layout

    @classmethod
    def from_counts(cls, counts, labels):
        """Words with the given letter counts.

        Parameters
        ----------
        counts : (n_words, d) integers >= 0
            every word has at least one letter
        labels : (n_words,) of +1 and -1

        Raises
        ------
        InputError
            counts are not such a matrix or exceed 2^31 - 1, or labels do not match
        """
        counts, labels = _checked_counts(counts), np.asarray(labels)
        if labels.shape != counts.shape[:1] or not np.isin(labels, (-1, 1)).all():
            raise InputError(f"labels must be {len(counts)} values +1 or -1, one a word, not {_brief(labels)}")
        n_words, d = counts.shape
        builder = _Builder(n_words, d, np.count_nonzero(counts) / counts.size)
        for first, last in builder.chunks():
            tally = _blank_tally(last - first, d)
            _tally_counts(counts[first:last], tally)
            builder.add(tally, labels[first:last])
        return cls(builder.layout())

    @property
    def n_words(self):
        return self._layout.n_words

    @property
    def d(self):
        return self._layout.d

    @property
    def labels(self):
        labels = self._layout.labels[: self.n_words]
        labels.flags.writeable = False
        return labels

    @property
    def path(self):
        if len(self._layout.starts):
            return "sparse"
        return "packed" if self._layout.digits == 1 else "wide"

    @property
    def nbytes(self):
        return sum(part.nbytes for part in self._layout if isinstance(part, np.ndarray))

    def counts(self):
        """The counts as an (n_words, d) int32 matrix."""
        counts = np.zeros((self.n_words, self.d), dtype=np.int32)
        if self.path == "sparse":
            word = np.repeat(np.arange(self.n_words), np.diff(self._layout.starts))
            counts[word, self._layout.letters] = self._layout.times
        else:
            _unpack(self._layout, counts)
        return counts


def sample_words(rng_letters, lengths, d, language):
    """Words of the given lengths whose letters are independent and uniform on the alphabet.

    Parameters
    ----------
    rng_letters : numpy.random.Generator
        the same state gives the same words
    lengths : (n_words,) integers >= 1
        letters in each word
    d : int
        letters in the alphabet
    language : analytic.languages.Language
        labels each word by the letters that occur in it

    Raises
    ------
    InputError
        lengths are not integers from 1 to 2^31 - 1, or the language names a letter beyond d

    Examples
    --------
    >>> from analytic.languages import any_of
    >>> words = sample_words(np.random.default_rng(0), [3, 1, 4], 5, any_of(1))
    >>> words.counts().sum(axis=1)
    array([3, 1, 4])
    """
    lengths = np.asarray(lengths)
    if lengths.ndim != 1 or not lengths.size or lengths.dtype.kind not in "iu":
        raise InputError(f"lengths must be a list of whole numbers, not {_brief(lengths)}")
    if lengths.min() < 1 or lengths.max() > LARGEST:
        raise InputError(f"lengths must be from 1 to {LARGEST}, not from {lengths.min()} to {lengths.max()}")
    language.check_alphabet(whole("d", d, low=2))
    lengths = lengths.astype(np.int64)
    targets = np.array(language.letters)
    builder = _Builder(len(lengths), d, 1.0 - np.mean((1.0 - 1.0 / d) ** lengths))
    for first, last in builder.chunks():
        tally = _blank_tally(last - first, d)
        _tally_draws(rng_letters, lengths[first:last], d, tally)
        present = tally[:, targets].transpose(0, 2, 1).reshape(-1, len(targets))[: last - first] > 0
        builder.add(tally, language.labels(present))
    return Words(builder.layout())


def _tally_draws(rng, lengths, d, tally):
    """Add to ``tally`` the letters of words of these lengths, drawn uniformly."""
    long = lengths > LONG_WORD * d
    short_lengths = np.where(long, 0, lengths)
    letters = rng.integers(0, d, size=short_lengths.sum(), dtype=np.uint16 if d <= 1 << 16 else np.uint32)
    _tally_letters(letters, short_lengths, tally)
    if long.any():  # letter j takes a Binomial(rest, 1/(d - j)) of the rest
        rows = np.flatnonzero(long)
        rest = lengths[rows]
        for letter in range(d):
            taken = rng.binomial(rest, 1.0 / (d - letter))
            tally[rows // ROWS, letter, rows % ROWS] = taken
            rest = rest - taken


class _Builder:
    """Packs tallies, chunk by chunk, into lists of letters or into codes (block, digit, group of letters, row)."""

    def __init__(self, n_words, d, density):
        self.n_words, self.d, self.sparse, self.done = n_words, d, density < SPARSE_DENSITY, 0
        blocks = -(-n_words // ROWS)
        self.labels = np.zeros(blocks * ROWS, dtype=np.int8)  # 0 marks rows that are no words
        self.codes = _aligned((0 if self.sparse else blocks, 1, _groups(d), ROWS), np.uint64)
        self.lists = []

    def chunks(self):
        """The (first, last) words of each chunk: whole blocks, as many as the tally may hold."""
        step = max(1, CHUNK_COUNTS // (self.d * ROWS)) * ROWS
        return ((first, min(first + step, self.n_words)) for first in range(0, self.n_words, step))

    def add(self, tally, labels):
        n_words = len(labels)
        self.labels[self.done : self.done + n_words] = labels
        if self.sparse:
            self.lists.append(_lists(tally, n_words))
        else:
            self.make_room(int(tally.max()))
            tally[-1, 0, (n_words - 1) % ROWS + 1 :] = 1  # rows that are no words get a letter: no Z may be 0
            first = self.done // ROWS
            _encode(tally, self.codes[first : first + len(tally)])
        self.done += n_words

    def make_room(self, largest):
        """As many digits as the largest count needs."""
        blocks, digits, groups, _ = self.codes.shape
        needed = math.ceil(max(largest, 1).bit_length() / 8)
        if needed > digits:
            wider = _aligned((blocks, needed, groups, ROWS), np.uint64)
            wider[:, :digits] = self.codes
            self.codes = wider

    def layout(self):
        starts, letters, times = np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int32)
        if self.sparse:
            sizes, letters, times = (np.concatenate(parts) for parts in zip(*self.lists, strict=True))
            starts = np.concatenate([[0], np.cumsum(sizes)])
        digits, n_words = self.codes.shape[1], self.n_words
        return Layout(self.codes.reshape(-1), digits, starts, letters, times, self.labels, n_words, n_words, self.d)


def _groups(d):
    return -(-d // GROUP)


def _blank_tally(n_words, d):
    """Counts to be filled in, as (block, letter, row)."""
    return np.zeros((-(-n_words // ROWS), _groups(d) * GROUP, ROWS), dtype=np.int32)


def _aligned(shape, dtype):
    """A zero array that starts at a multiple of 64 bytes, the width of the widest vector load."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    buffer = np.zeros(size + 64, dtype=np.uint8)
    start = -buffer.ctypes.data % 64
    return buffer[start : start + size].view(dtype).reshape(shape)


def _checked_counts(counts):
    counts = np.asarray(counts)
    if counts.ndim != 2 or counts.shape[0] < 1 or counts.shape[1] < 2 or counts.dtype.kind not in "iu":
        raise InputError(
            f"counts must be integers of shape (words, letters), at least 1 word and 2 letters, not {_brief(counts)}"
        )
    if counts.min() < 0:
        raise InputError(f"counts must be at least 0, not {counts.min()}")
    if counts.max() > LARGEST:
        raise InputError(f"counts must be at most {LARGEST}, not {counts.max()}")
    empty = np.flatnonzero(~counts.any(axis=1))
    if len(empty):
        raise InputError(f"counts must give every word at least one letter, but word {empty[0]} has none")
    return counts.astype(counts.dtype.newbyteorder("="), copy=False)  # numba takes every byte order for the machine's


def _brief(array):
    return f"{array.dtype} of shape {array.shape}" if array.size > 4 else f"{array.tolist()!r}"


@jit
def _tally_counts(counts, tally):
    for word in range(counts.shape[0]):
        for letter in range(counts.shape[1]):
            tally[word // ROWS, letter, word % ROWS] = counts[word, letter]


@jit
def _tally_letters(letters, lengths, tally):
    at = 0
    for word in range(lengths.size):
        block, row = tally[word // ROWS], word % ROWS
        for position in range(at, at + lengths[word]):
            block[letters[position], row] += 1
        at += lengths[word]


@jit
def _encode(tally, codes):
    for block in range(codes.shape[0]):
        for digit in range(codes.shape[1]):
            for group in range(codes.shape[2]):
                for i in range(GROUP):
                    for row in range(ROWS):
                        count = (tally[block, group * GROUP + i, row] >> 8 * digit) % BASE
                        field = np.float64(count * UNIT).view(np.uint64) >> np.uint64(FIELD * i)
                        codes[block, digit, group, row] |= field


@jit
def _lists(tally, n_words):
    """Number of distinct letters of each word, the letters, and how often each occurs."""
    size = np.count_nonzero(tally)
    sizes, letters, times = np.zeros(n_words, np.int64), np.empty(size, np.int32), np.empty(size, np.int32)
    at = 0
    for word in range(n_words):
        for letter in range(tally.shape[1]):
            count = tally[word // ROWS, letter, word % ROWS]
            if count > 0:
                letters[at], times[at] = letter, count
                at += 1
                sizes[word] += 1
    return sizes, letters, times


# ---- kernels ---------------------------------------------------------------------------------------------------------

inner = partial(jit, no_cpython_wrapper=True, no_cfunc_wrapper=True)  # only for kernels to call: compiles faster


@inner
def _floats(rows, columns):
    """Zeros that start at a multiple of 64 bytes, the width of the widest vector load."""
    buffer = np.zeros(rows * columns + 7)
    start = -(buffer.ctypes.data // 8) % 8
    return buffer[start : start + rows * columns].reshape(rows, columns)


@inner
def _work(layout, heads):
    """What one pass fills: outputs f, gradients, and scratch."""
    columns = layout.digits * ((layout.d + GROUP - 1) // GROUP * GROUP)
    return Work(
        _floats(1, layout.labels.size)[0],
        _floats(heads, layout.d),
        _floats(heads, layout.d),
        _floats(heads, columns),
        _floats(heads, columns),
        _floats(heads, 2 * ROWS),
        _floats(heads, 2 * LANES * columns),
        _floats(1, ROWS)[0],
        _floats(1, ROWS)[0],
        np.empty(layout.d, np.int32),
        np.empty(layout.d, np.int32),
        _floats(heads, layout.d),
        np.empty(heads),
        np.empty(heads),
    )


@inner
def _value(code, i):
    """The count of the i-th letter in a code, times UNIT."""
    return np.uint64((code << np.uint64(FIELD * i)) & MASK).view(np.float64)


@inner
def _values(code):
    """All five of a code."""
    return _value(code, 0), _value(code, 1), _value(code, 2), _value(code, 3), _value(code, 4)


@inner(fastmath={"contract"})
def _forward(codes, e, s, sums, f, block, h):
    """Z = sum_j n_j e_j, S = sum_j n_j s_j and o = S / Z of head h for the words of one block; adds o to f."""
    e, s, sums, f = e[h], s[h], sums[h], f[block * ROWS :]
    at = block * (e.size // GROUP) * ROWS
    sums[:] = 0.0
    for j in range(0, e.size, GROUP):
        n = codes[at:]
        e0, e1, e2, e3, e4 = e[j], e[j + 1], e[j + 2], e[j + 3], e[j + 4]
        s0, s1, s2, s3, s4 = s[j], s[j + 1], s[j + 2], s[j + 3], s[j + 4]
        for r in range(ROWS):
            n0, n1, n2, n3, n4 = _values(n[r])
            sums[r] = sums[r] + n0 * e0 + n1 * e1 + n2 * e2 + n3 * e3 + n4 * e4
            sums[ROWS + r] = sums[ROWS + r] + n0 * s0 + n1 * s1 + n2 * s2 + n3 * s3 + n4 * s4
        at += ROWS
    for r in range(ROWS):
        inverse = 1.0 / sums[r]
        o = sums[ROWS + r] * inverse
        sums[r], sums[ROWS + r] = inverse, o
        f[r] += o


@inner(fastmath={"contract"})
def _backward(codes, sums, residual, totals, block, h, ahead):
    """Add G_j = sum_w n_j c and K_j = sum_w n_j c o of head h over the words of one block, lane by lane.

    Unless ``ahead`` is None, also asks for the codes of the next block. (Numba compiles a version for None, without
    the question: inside the loop it would cost codes that are in the cache a quarter of their speed.)
    """
    sums, totals = sums[h], totals[h]
    size = totals.size // (2 * LANES * GROUP) * ROWS
    at = block * size
    for r in range(ROWS):
        c = sums[r] * residual[r]
        sums[r] = c
        sums[ROWS + r] *= c
    for first in range(0, totals.size, 2 * LANES * GROUP):
        n, t = codes[at:], totals[first:]
        if ahead is not None:
            for r in range(0, ROWS, LINE):
                ask_ahead(codes, at + size + r)
        for lane in range(LANES):
            g0, k0 = t[lane], t[LANES + lane]
            g1, k1 = t[2 * LANES + lane], t[3 * LANES + lane]
            g2, k2 = t[4 * LANES + lane], t[5 * LANES + lane]
            g3, k3 = t[6 * LANES + lane], t[7 * LANES + lane]
            g4, k4 = t[8 * LANES + lane], t[9 * LANES + lane]
            for row in range(0, ROWS, LANES):  # unrolled by LLVM, so that the loop over lanes becomes vectors
                r = row + lane
                n0, n1, n2, n3, n4 = _values(n[r])
                c, o = sums[r], sums[ROWS + r]
                g0, k0 = g0 + n0 * c, k0 + n0 * o
                g1, k1 = g1 + n1 * c, k1 + n1 * o
                g2, k2 = g2 + n2 * c, k2 + n2 * o
                g3, k3 = g3 + n3 * c, k3 + n3 * o
                g4, k4 = g4 + n4 * c, k4 + n4 * o
            t[lane], t[LANES + lane] = g0, k0
            t[2 * LANES + lane], t[3 * LANES + lane] = g1, k1
            t[4 * LANES + lane], t[5 * LANES + lane] = g2, k2
            t[6 * LANES + lane], t[7 * LANES + lane] = g3, k3
            t[8 * LANES + lane], t[9 * LANES + lane] = g4, k4
        at += ROWS


@inner
def _residuals(f, labels, residual, losses, block):
    """f - y of the words of one block, and 0 for rows that are no words; adds its square to the losses."""
    f, labels = f[block * ROWS :], labels[block * ROWS :]
    for r in range(ROWS):
        residual[r] = (f[r] - labels[r]) * abs(labels[r])
        losses[r] += residual[r] * residual[r]


@inner
def _range(values):
    """Smallest and largest (numba takes a second to compile its own)."""
    low = high = values[0]
    for value in values:
        low, high = min(low, value), max(high, value)
    return low, high


@inner
def _by_block(layout, alpha, beta, work, backward):
    """One pass over packed words: outputs f, loss, and with ``backward`` both gradients."""
    heads, columns = work.e.shape
    width = columns // layout.digits
    for h in range(heads):
        _, top = _range(alpha[h])
        for digit in range(layout.digits):
            for j in range(layout.d):
                column = digit * width + j
                work.e[h, column] = HALF * BASE**digit * math.exp(alpha[h, j] - top)
                work.s[h, column] = work.e[h, column] * beta[h, j]
    work.totals[:] = 0.0
    work.losses[:] = 0.0
    work.f[:] = -1.0
    # Named once, and cut to rows only by the functions they are handed to: numba counts references per use.
    codes, labels, f, residual, losses = layout.codes, layout.labels, work.f, work.residual, work.losses
    e, s, sums, totals = work.e, work.s, work.sums, work.totals
    beyond_cache = 8 * columns // GROUP * layout.of > CACHE
    for block in range(labels.size // ROWS):
        for h in range(heads):
            _forward(codes, e, s, sums, f, block, h)
        _residuals(f, labels, residual, losses, block)
        if backward:
            for h in range(heads):
                if beyond_cache and h == 0:
                    _backward(codes, sums, residual, totals, block, h, True)
                else:
                    _backward(codes, sums, residual, totals, block, h, None)
    if backward:
        _gather(layout, beta, work)
    loss = 0.0
    for part in losses:
        loss += part
    return loss / layout.of


@inner
def _gather(layout, beta, work):
    """Gradients from the partial sums: d_beta = (2/N) e G and d_alpha = (2/N) e (beta G - K)."""
    work.d_alpha[:] = 0.0
    work.d_beta[:] = 0.0
    width = work.e.shape[1] // layout.digits
    for h in range(work.e.shape[0]):
        for digit in range(layout.digits):
            for j in range(layout.d):
                column = digit * width + j
                g, k = 0.0, 0.0
                for lane in range(2 * LANES * column, 2 * LANES * column + LANES):
                    g += work.totals[h, lane]
                    k += work.totals[h, LANES + lane]
                share = 2.0 / layout.of * work.e[h, column]
                work.d_beta[h, j] += share * g
                work.d_alpha[h, j] += share * (beta[h, j] * g - k)


@inner
def _by_word(layout, alpha, beta, near, work, backward):
    """The same for words one by one: for lists of letters, and for scores that lie far apart (not ``near``)."""
    heads, labels, f, e, d_alpha, d_beta = alpha.shape[0], layout.labels, work.f, work.e, work.d_alpha, work.d_beta
    weights, sums, outputs = work.weights, work.weight_sums, work.outputs
    starts, letters, times = layout.starts, layout.letters, layout.times
    if not starts.size:
        letters, times = work.letters, work.times
    loss = 0.0
    d_alpha[:] = 0.0
    d_beta[:] = 0.0
    for h in range(heads):
        _, top = _range(alpha[h])
        for j in range(layout.d):
            e[h, j] = math.exp(alpha[h, j] - top)
    for word in range(layout.n_words):
        if starts.size:
            first, last = starts[word], starts[word + 1]
        else:
            first, last = 0, _unpack_word(layout, word, letters, times)
        f[word] = -1.0
        for h in range(heads):
            top = -math.inf
            if not near:
                for i in range(first, last):
                    top = max(top, alpha[h, letters[i]])
            z, o = 0.0, 0.0
            for i in range(first, last):
                j = letters[i]
                weight = times[i] * (e[h, j] if near else math.exp(alpha[h, j] - top))
                weights[h, i - first] = weight
                z += weight
                o += weight * beta[h, j]
            sums[h], outputs[h] = z, o / z
            f[word] += outputs[h]
        residual = f[word] - labels[word]
        loss += residual * residual
        if backward:
            for h in range(heads):
                c, o = 2.0 / layout.of * residual / sums[h], outputs[h]
                for i in range(first, last):
                    j, pull = letters[i], c * weights[h, i - first]
                    d_beta[h, j] += pull
                    d_alpha[h, j] += pull * (beta[h, j] - o)
    return loss / layout.of


@inner
def _unpack_word(layout, word, letters, times):
    """Write the letters that occur in a packed word and how often; returns how many letters."""
    size, groups = 0, (layout.d + GROUP - 1) // GROUP
    for letter in range(layout.d):
        count = 0
        for digit in range(layout.digits):
            group = (word // ROWS * layout.digits + digit) * groups + letter // GROUP
            code = layout.codes[group * ROWS + word % ROWS]
            count += int(_value(code, letter % GROUP) / UNIT) * BASE**digit
        if count:
            letters[size], times[size] = letter, count
            size += 1
    return size


@jit
def _unpack(layout, counts):
    letters, times = np.empty(layout.d, np.int32), np.empty(layout.d, np.int32)
    for word in range(layout.n_words):
        for i in range(_unpack_word(layout, word, letters, times)):
            counts[word, letters[i]] = times[i]


@inner
def _pass(layout, alpha, beta, work, backward):
    """Outputs, loss and gradients at one state, by the way that suits it."""
    far = 0
    for h in range(alpha.shape[0]):
        (lowest, highest), (low, high) = _range(alpha[h]), _range(beta[h])
        size = max(high, -low)
        if not highest - lowest <= FAR_SCORES or not (size == 0.0 or 1 / FAR_WEIGHTS <= size <= FAR_WEIGHTS):
            far += 1
    near = far == 0
    if near and not layout.starts.size:
        return _by_block(layout, alpha, beta, work, backward)
    return _by_word(layout, alpha, beta, near, work, backward)


@jit
def _run(layout, alpha, beta, rate_a, rate_o, loss, loss_limit, last_gradient):
    """Fill loss[t], alpha[t], beta[t] from alpha[0], beta[0] on.

    Returns how many states were reached, and of the last one f and, if ``last_gradient``, the gradients.
    """
    work = _work(layout, alpha.shape[1])
    n, last = 0, loss.size - 1
    for t in range(loss.size):
        loss[t] = _pass(layout, alpha[t], beta[t], work, t < last or last_gradient)
        n = t + 1
        if t == last or not (loss[t] < math.inf and loss[t] <= loss_limit):
            break
        for h in range(alpha.shape[1]):
            for j in range(layout.d):
                alpha[n, h, j] = alpha[t, h, j] - rate_a * work.d_alpha[h, j]
                beta[n, h, j] = beta[t, h, j] - rate_o * work.d_beta[h, j]
    return n, work.f[: layout.n_words], work.d_alpha, work.d_beta


# ---- many words, in parts --------------------------------------------------------------------------------------------


def _edges(layout):
    """First word of each part, and the end: whole blocks, as even as they can be cut."""
    blocks = -(-layout.n_words // ROWS)
    parts = min(PARTS, blocks // PART_BLOCKS) if layout.n_words * layout.d >= LARGE else 1
    return [min(blocks * part // parts * ROWS, layout.n_words) for part in range(parts + 1)] if parts > 1 else []


@inner
def _part(layout, first, last):
    """The words from first to before last, which start and end with a block, as views."""
    end = (last + ROWS - 1) // ROWS * ROWS
    per_word = layout.codes.size // layout.labels.size
    return Layout(
        layout.codes[first * per_word :],
        layout.digits,
        layout.starts[first:],
        layout.letters,
        layout.times,
        layout.labels[first:end],
        last - first,
        layout.of,
        layout.d,
    )


@jit
def _some_parts(layout, edges, thread, threads, alpha, beta, f, loss, gradient, backward):
    """Every ``threads``-th part from the ``thread``-th on: its f, its share of the loss, and of the gradients."""
    work = _work(_part(layout, 0, 0), alpha.shape[0])
    for i in range(thread, edges.size - 1, threads):
        part = _part(layout, edges[i], edges[i + 1])
        outputs = f[edges[i] : edges[i] + part.labels.size]
        loss[i] = _pass(part, alpha, beta, _with_outputs(work, outputs, gradient[i, 0], gradient[i, 1]), backward)


@inner
def _with_outputs(work, f, d_alpha, d_beta):
    """The same scratch, with other places for the results."""
    return Work(
        f,
        d_alpha,
        d_beta,
        work.e,
        work.s,
        work.sums,
        work.totals,
        work.losses,
        work.residual,
        work.letters,
        work.times,
        work.weights,
        work.weight_sums,
        work.outputs,
    )


def _run_parts(layout, edges, alpha, beta, rate_a, rate_o, loss, loss_limit, last_gradient):
    """What `_run` does, by several threads. Each adds up whole parts, so their number changes no bit."""
    parts, last = len(edges) - 1, loss.size - 1
    threads = min(THREADS, parts)
    f = _aligned((layout.labels.size,), np.float64)
    losses, gradients = np.empty(parts), np.zeros((parts, 2, *alpha.shape[1:]))
    edges = np.array(edges)
    with np.errstate(over="ignore", invalid="ignore"), ThreadPoolExecutor(threads) as pool:
        for t in range(loss.size):
            task = threads, alpha[t], beta[t], f, losses, gradients, t < last or last_gradient
            others = [pool.submit(_some_parts, layout, edges, thread, *task) for thread in range(1, threads)]
            _some_parts(layout, edges, 0, *task)
            for other in others:
                other.result()
            loss[t], (d_alpha, d_beta) = losses.sum(), gradients.sum(axis=0)
            n = t + 1
            if t == last or not (loss[t] < math.inf and loss[t] <= loss_limit):
                break
            alpha[n] = alpha[t] - rate_a * d_alpha
            beta[n] = beta[t] - rate_o * d_beta
    return n, f[: layout.n_words], d_alpha, d_beta


def _descend(layout, *run):
    edges = _edges(layout)
    return _run_parts(layout, edges, *run) if edges else _run(layout, *run)


# ---- what others call ------------------------------------------------------------------------------------------------

Path = namedtuple("Path", "loss alpha beta")


def _checked(words, alpha, beta):
    """The layout of ``words``, and ``alpha`` and ``beta`` as (H, d) float64 arrays of their own."""
    if not isinstance(words, Words):
        raise InputError(f"words must be made by Words.from_counts or sample_words, not {type(words).__name__}")
    arrays = []
    for name, value in (("alpha", alpha), ("beta", beta)):
        array = np.asarray(value)
        if array.dtype.kind not in "fiu" or array.ndim not in (1, 2) or array.shape[-1] != words.d or not array.size:
            shape = f"({words.d},) or (H, {words.d})"
            raise InputError(f"{name} must hold real numbers in the shape {shape}, not {_brief(array)}")
        if not np.isfinite(array).all():
            raise InputError(f"{name} must be finite, but {np.argwhere(~np.isfinite(array))[0].tolist()} is not")
        arrays.append(np.array(array, dtype=np.float64, order="C"))
    if arrays[0].shape != arrays[1].shape:
        raise InputError(f"beta must have the shape of alpha, {arrays[0].shape}, not {arrays[1].shape}")
    return words._layout, *map(np.atleast_2d, arrays)


def _state(words, alpha, beta, gradient):
    """f, loss and, if ``gradient``, the gradients at one state."""
    layout, alpha, beta = _checked(words, alpha, beta)
    loss = np.empty(1)
    _, f, d_alpha, d_beta = _descend(layout, alpha[None], beta[None], 0.0, 0.0, loss, math.inf, gradient)
    return f, float(loss[0]), d_alpha, d_beta


def scores(words, alpha, beta):
    """The model's output f of every word; the prediction is its sign.

    f = sum_h sum_j a^h_j beta^h_j - 1, a^h_j = n_j e^{alpha^h_j} / sum_i n_i e^{alpha^h_i}.

    Parameters
    ----------
    words : Words
    alpha, beta : (d,) for one head, or (H, d)

    Returns
    -------
    f : (n_words,) float64

    Raises
    ------
    InputError
        shapes do not match the words, or a parameter is not finite

    Examples
    --------
    >>> words = Words.from_counts([[1, 1], [0, 1]], [1, -1])
    >>> scores(words, [0.0, 0.0], [2.0, 0.0])
    array([ 0., -1.])
    """
    return _state(words, alpha, beta, gradient=False)[0]


def evaluate(words, alpha, beta):
    """Loss, mean (f - y)^2, and accuracy, the share of words with y f > 0 (f = 0 is wrong).

    Parameters and errors are those of `scores`.

    Examples
    --------
    >>> words = Words.from_counts([[1, 1], [0, 1]], [1, -1])
    >>> evaluate(words, [0.0, 0.0], [2.0, 0.0])
    (0.5, 0.5)
    """
    f, loss, _, _ = _state(words, alpha, beta, gradient=False)
    return loss, float(np.mean(words.labels * f > 0))


def loss_and_gradient(words, alpha, beta):
    """Loss and its gradients by ``alpha`` and ``beta``.

    loss = mean (f - y)^2; with r = f - y and head outputs o^h = sum_j a^h_j beta^h_j,

        d loss / d beta^h_j = (2/N) sum_w r a^h_j,   d loss / d alpha^h_j = (2/N) sum_w r a^h_j (beta^h_j - o^h).

    Parameters and errors are those of `scores`; the gradients have the shape of ``alpha``.

    Examples
    --------
    >>> words = Words.from_counts([[1, 1], [0, 1]], [1, -1])
    >>> loss, d_alpha, d_beta = loss_and_gradient(words, [0.0, 0.0], [2.0, 0.0])
    >>> loss, d_alpha, d_beta
    (0.5, array([-0.5,  0.5]), array([-0.5, -0.5]))
    """
    _, loss, d_alpha, d_beta = _state(words, alpha, beta, gradient=True)
    return loss, d_alpha.reshape(np.shape(alpha)), d_beta.reshape(np.shape(beta))


def descend(words, alpha, beta, rate_a, rate_o, steps, loss_limit=math.inf):
    """Full-batch gradient descent on both layers at once.

    alpha <- alpha - rate_a d loss / d alpha,   beta <- beta - rate_o d loss / d beta, both from the same gradient.

    Parameters
    ----------
    words : Words
    alpha, beta : (d,) for one head, or (H, d)
        the state to start from
    rate_a, rate_o : float
        step sizes; they multiply the gradient of the mean loss, and 0 freezes the layer
    steps : int
        number of updates
    loss_limit : float
        stop at the first loss that exceeds it or is not finite

    Returns
    -------
    Path
        ``loss[t]``, ``alpha[t]``, ``beta[t]`` after t updates, t = 0..steps, or up to the state that stopped the run.
        A run cut into several calls has the same bits.

    Raises
    ------
    InputError
        as in `scores`, or a rate is negative or not finite, or steps is not a whole number of at least 0

    Examples
    --------
    >>> words = Words.from_counts([[1, 1], [0, 1]], [1, -1])
    >>> path = descend(words, [0.0, 0.0], [0.0, 0.0], rate_a=0.0, rate_o=0.5, steps=2)
    >>> path.loss.tolist()
    [2.0, 1.25, 0.9765625]
    """
    shape = np.shape(alpha)
    layout, alpha, beta = _checked(words, alpha, beta)
    rate_a, rate_o, steps = rate("rate_a", rate_a), rate("rate_o", rate_o), whole("steps", steps, low=0)
    loss_limit = math.inf if loss_limit == math.inf else real("loss_limit", loss_limit, low=0.0)
    loss, alphas, betas = np.empty(steps + 1), np.empty((steps + 1, *alpha.shape)), np.empty((steps + 1, *beta.shape))
    alphas[0], betas[0] = alpha, beta
    n = _descend(layout, alphas, betas, rate_a, rate_o, loss, loss_limit, False)[0]
    return Path(loss[:n], alphas[:n].reshape(n, *shape), betas[:n].reshape(n, *shape))
