"""Vector and matrix scaling: linear maps of the logits of classes that exclude one another."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from harness.calibration.fit import Scaling, refuse_flat, refuse_unfit, softmax
from harness.errors import Misconfigured

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

NEAR, NEARER = 1e-5, 1e-8
"""How flat the loss of all cases is where the search stops, first and last."""
STEPS, HALVINGS, SOLVING = 200, 40, 500
FAR = 20.0
"""How far a step moves a logit at most."""
MOVED = 1.0
"""A logit that moves so far between the two stands on a loss that falls for ever: there it moves by ln(NEAR / NEARER),
and where there is an optimum hardly at all.
"""


def fit_vector(logits: Floats, gold: Ints) -> Scaling:
    """A scale and a shift for each class, on logits [n, k] of gold classes [n].

    Raises Misconfigured where no loss is the least: a class without a gold case, or one that is told from the others
    without an error.
    """
    k = logits.shape[1]
    _refuse_unscalable("vector scaling", logits, gold)

    def of(unit: Floats) -> _Linear:
        return _Linear(
            lambda x: unit * x[:k] + x[k:], lambda e: np.concatenate([(e * unit).sum(axis=0), e.sum(axis=0)])
        )

    found = _fitted("vector scaling", logits, gold, of, np.concatenate([np.ones(k), np.zeros(k)]))
    return _in_units(found, np.diag(found.x[:k]), found.x[k:])


def fit_matrix(logits: Floats, gold: Ints) -> Scaling:
    """A linear map of the logits. Raises Misconfigured as `fit_vector`, and for fewer cases than numbers to find."""
    k = logits.shape[1]
    _refuse_unscalable("matrix scaling", logits, gold)
    if len(logits) < k * (k + 1):
        raise Misconfigured(
            "matrix scaling", found=f"{len(logits)} cases for {k * (k + 1)} numbers", expected="more cases than that",
            mend="Fit vector scaling, or a temperature.",
        )  # fmt: skip

    def of(unit: Floats) -> _Linear:
        return _Linear(
            lambda x: unit @ x[: k * k].reshape(k, k) + x[k * k :],
            lambda e: np.concatenate([(unit.T @ e).ravel(), e.sum(axis=0)]),
        )

    found = _fitted("matrix scaling", logits, gold, of, np.concatenate([np.eye(k).ravel(), np.zeros(k)]))
    return _in_units(found, found.x[: k * k].reshape(k, k), found.x[k * k :])


@dataclass(frozen=True, slots=True)
class _Linear:
    """Logits [n, k] of parameters [m], and what an error of each logit [n, k] says of them, [m]."""

    forward: Callable[[Floats], Floats]
    back: Callable[[Floats], Floats]


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """Parameters over logits that were centred by class and divided by one spread. Shapes: x [m], centre [k]."""

    x: Floats
    centre: Floats
    spread: float


def _fitted(what: str, logits: Floats, gold: Ints, of: Callable[[Floats], _Linear], start: Floats) -> _Found:
    """The parameters with the least loss: by Newton's steps, so that many classes and few look alike."""
    with np.errstate(over="ignore", invalid="ignore"):  # of scores beyond what their sums can hold: refused below
        centre = logits.mean(axis=0)
        spread = float((logits - centre).std())
        if not np.isfinite(spread) or not 0 < spread < 1e150:
            raise _no_optimum(what)
        linear = of((logits - centre) / spread)
        near = _minimised(linear, gold, start, NEAR)
        nearer = _minimised(linear, gold, near, NEARER)
        moved = linear.forward(nearer) - linear.forward(near)
    # What is added to all logits of a case alike changes nothing.
    moved = moved - moved.mean(axis=1, keepdims=True)
    if not np.isfinite(nearer).all() or not np.abs(moved).max() < MOVED:
        raise _no_optimum(what)
    return _Found(nearer, centre, spread)


@dataclass(frozen=True, slots=True, eq=False)
class _At:
    """The loss of all cases at parameters [m], its gradient [m], and the chances of the classes [n, k] there."""

    x: Floats
    loss: float
    gradient: Floats
    chances: Floats

    @classmethod
    def of(cls, linear: _Linear, gold: Ints, x: Floats) -> "_At":
        logits, rows = linear.forward(x), np.arange(len(gold))
        highest = logits.max(axis=1)
        total = highest + np.log(np.exp(logits - highest[:, None]).sum(axis=1))
        chances = softmax(logits)
        error = chances.copy()
        error[rows, gold] -= 1
        return cls(x, float((total - logits[rows, gold]).sum()), linear.back(error), chances)


def _minimised(linear: _Linear, gold: Ints, start: Floats, flat: float) -> Floats:
    """Where no part of the gradient is above `flat`, or no step leads further down."""
    at = _At.of(linear, gold, start)
    for _ in range(STEPS):
        if not np.abs(at.gradient).max() > flat:
            break
        step = _newton_step(linear, at)
        step *= min(1.0, FAR / max(float(np.abs(linear.forward(step)).max()), 1e-300))
        slope = float(at.gradient @ step)
        for _ in range(HALVINGS):
            then = _At.of(linear, gold, at.x + step)
            # Near the optimum the loss is equal but for rounding, and its slope says which is lower.
            if then.loss <= at.loss * (1 + 1e-14) and abs(float(then.gradient @ step)) <= abs(slope):
                break
            step, slope = step / 2, slope / 2
        else:
            break
        at = then
    return at.x


def _newton_step(linear: _Linear, at: _At) -> Floats:
    """The solution of curvature · step = -gradient by conjugate gradients, the nearer the flatter the loss is."""
    step, left = np.zeros(len(at.x)), -at.gradient
    towards, size = left.copy(), float(left @ left)
    wanted = size * min(0.01, np.sqrt(size))
    for _ in range(SOLVING):
        moved = linear.forward(towards)
        curved = linear.back(at.chances * (moved - (at.chances * moved).sum(axis=1, keepdims=True)))
        curvature = float(towards @ curved)
        if not curvature > 1e-300:
            break
        length = size / curvature
        step, left = step + length * towards, left - length * curved
        before, size = size, float(left @ left)
        if size <= wanted:
            break
        towards = left + size / before * towards
    return step if step.any() else -at.gradient


def _in_units(found: _Found, weights: Floats, bias: Floats) -> Scaling:
    """Over the logits as they are. What is added to every class alike changes nothing: the bias with mean 0 is told."""
    own = weights / found.spread
    shifted = bias - found.centre @ own
    return Scaling(own, shifted - shifted.mean())


def _refuse_unscalable(what: str, logits: Floats, gold: Ints) -> None:
    k = logits.shape[1]
    refuse_unfit(logits, gold, k)
    refuse_flat(logits)
    lacking = np.setdiff1d(np.arange(k), gold)
    if len(lacking):
        shown = ", ".join(str(each + 1) for each in lacking[:5]) + (", …" if len(lacking) > 5 else "")
        raise Misconfigured(
            what, found=f"no calibration case of {len(lacking)} of {k} classes (columns {shown})",
            expected="cases of every class: the loss falls for ever as one without any gets less likely",
            mend="Give the calibration role cases of each, or fit a temperature, which has no number of one class.",
        )  # fmt: skip


def _no_optimum(what: str) -> Misconfigured:
    return Misconfigured(
        what, found="a loss that falls for ever: classes are told apart without an error",
        expected="cases of which some are wrong, of every class",
        mend="Fit on more cases, or a family with fewer numbers.",
    )  # fmt: skip
