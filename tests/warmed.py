"""Importing this trains one small run, so that processes forked afterwards find everything loaded and compiled."""

from sim.config import resolve
from sim.descent import train

train(resolve("occurrence", "joint(2x)", d=6, train_words=60, test_words=20), 0)
