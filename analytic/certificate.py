r"""The certified length of a trained letter model: up to which length is *every* word decided correctly?

A word with counts n is decided correctly iff y f(n) > 0 (f = 0 is wrong), f = sum_h N_h/Z_h - 1 with
N_h = sum_j n_j u_j beta_j, Z_h = sum_j n_j u_j, u = e^alpha of head h. alpha and beta are the given floats, exactly.

**Finite for every language.** Let P and P + s be sets of present letters with different labels, P not empty (there
are such sets unless all words have the same label). In w^m s, w a word on P, the share of s vanishes: f(w^m s) ->
f(w), which has one sign only. So every model decides some word wrongly, and the certificate always has a witness.

**One head**, or several with equal scores: f has the sign of sum_j n_j w_j, w_j = e^{alpha_j} (sum_h beta^h_j - 1).
Among the words that contain the letters P and are made of P and Q, the worst of length m has each letter of P
once and else the letter with the most harmful w: the first wrong length is a ceiling. For OR, M* = ceil(min_S w /
max_o |w_o|) if min_S w > 0 > max_o w, else 0. Everything is decided exactly, also at the boundary.

**Several heads**: see `certificate_search`.
"""

from dataclasses import dataclass

import numpy as np

from .certificate_search import Search
from .errors import InputError, whole
from .exact_signs import LetterWeights
from .label_cubes import label_cubes

NODES = 2000  # about 5 ms each
WIDEST = 9000.0  # span of one head's scores; Python prints numbers of up to 4300 digits, e^9000 has 3909


@dataclass(frozen=True)
class Certificate:
    """What `certify` returns.

    Attributes
    ----------
    length : every word of at most this many letters is decided correctly
    witness : (d,) counts of a word that is not
    sharp : True iff the witness has length + 1 letters, so that no longer length is safe
    """

    length: int
    witness: tuple
    sharp: bool

    @property
    def witness_text(self):
        """The wrong word, letters counted from 1: ``1 2^93590``."""
        return " ".join(f"{j + 1}" if n == 1 else f"{j + 1}^{n}" for j, n in enumerate(self.witness) if n)


def certify(language, alpha, beta, nodes=NODES):
    """Certified length of the model (alpha, beta) on a language, with a wrong word above it.

    Parameters
    ----------
    language : `Language`
    alpha, beta : (d,) or (H, d) finite floats
    nodes : limit of the search with several heads; when it is reached the certificate may not be sharp

    Returns
    -------
    `Certificate`, always sharp for one head

    Raises
    ------
    InputError : wrong shapes, values that are not finite, scores more than 9000 apart (600 with several heads)

    Examples
    --------
    >>> import math
    >>> from analytic.languages import any_of
    >>> certify(any_of(1), [math.log(7), 0, 0], [2, 0.25, 0.5])  # M* = ceil(7 / 0.75)
    Certificate(length=10, witness=(1, 10, 0), sharp=True)
    """
    alpha, beta = _check_model(language, alpha, beta)
    if np.all(alpha == alpha[0]):
        if np.ptp(alpha[0]) > WIDEST:
            raise InputError(f"alpha must span at most {WIDEST:g}, not {np.ptp(alpha[0]):g}: the certified length has "
                             "one digit for every 2.3 of it")
        return _certify_linear(language, alpha[0], beta)
    search = Search(language, alpha, beta, whole("nodes", nodes))
    length = search.run()
    return Certificate(length, search.witness, length == sum(search.witness) - 1)


def _check_model(language, alpha, beta):
    alpha, beta = (np.atleast_2d(np.asarray(v, dtype=np.float64)) for v in (alpha, beta))
    if alpha.shape != beta.shape or alpha.ndim != 2 or not alpha.size:
        raise InputError(
            f"alpha and beta must have the same shape (d,) or (heads, d), not {alpha.shape} and {beta.shape}"
        )
    if not (np.all(np.isfinite(alpha)) and np.all(np.isfinite(beta))):
        raise InputError("alpha and beta must be finite")
    language.check_alphabet(alpha.shape[1])
    return alpha, beta


def _certify_linear(language, alpha, beta):
    """One head, or heads that share their attention: the first wrong length, exactly."""
    d, weights = len(alpha), LetterWeights(alpha, beta)
    others = sorted(set(range(d)) - set(language.letters))
    best = None
    for y in (1, -1):
        worst_other = [weights.largest(others, -y)] if others else []
        for present, absent in label_cubes(language, y):
            allowed = [j for j in language.letters if j not in absent] + worst_other
            if not allowed:  # the empty word only
                continue
            harmful = weights.largest(allowed, -y)
            word = _first_wrong(weights, dict.fromkeys(present or [harmful], 1), harmful, y)
            if word is not None and (best is None or sum(word.values()) < sum(best.values())):
                best = word
    witness = tuple(best.get(j, 0) for j in range(d))
    return Certificate(sum(witness) - 1, witness, True)


def _first_wrong(weights, base, harmful, y):
    """The shortest wrong word with each letter of ``base`` and else the ``harmful`` one, or None."""
    if y * weights.sign(base) <= 0:
        return base
    if y * weights.sign({harmful: 1}) >= 0:
        return None
    return {**base, harmful: base.get(harmful, 0) + weights.first_multiple(base, harmful)}
