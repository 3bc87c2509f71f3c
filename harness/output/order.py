"""The two total orders in which documents may stand. Neither depends on the order they come in.

Shapes: documents [d] str, each once; scores [d], finite, higher is better. Both return positions [d] int64 into
the inputs, best first. Document IDs compare by code point, which is the order of their UTF-8 bytes.
"""

import numpy as np
from numpy.typing import NDArray

Documents = NDArray[np.str_] | NDArray[np.object_]


def trec_order(documents: Documents, scores: NDArray[np.floating]) -> NDArray[np.int64]:
    """trec_eval's order: score as float32 falling, then document ID falling; a rank column plays no part."""
    with np.errstate(over="ignore"):
        single = scores.astype(np.float32)
    return _order(documents, -single, sign=-1)


def expected_order(documents: Documents, scores: NDArray[np.floating]) -> NDArray[np.int64]:
    """Score as float64 falling, then document ID rising: an order that is only there to be the same every time."""
    return _order(documents, -scores.astype(np.float64), sign=1)


def _order(documents: Documents, key: NDArray[np.floating], *, sign: int) -> NDArray[np.int64]:
    order = np.argsort(key, kind="stable")
    ranked = key[order]
    if (ranked[1:] != ranked[:-1]).all():
        return order
    _, alphabetical = np.unique(documents, return_inverse=True)
    return np.lexsort((sign * alphabetical, key))
