"""What the parent did with a case, as far as slices are made of it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ParentCase:
    """Tokens None where the parent does not tell, and then `cut` too where no document was cut. `cut`: the case, or a
    relevant document of it, was not read whole. `rank`: of the first relevant document among what a last stage was
    given, else in the ranking, where tied documents share the first of their places; None where it is in neither.
    `norm` of the query's vector before scoring, None where it has none.
    """

    tokens: int | None = None
    cut: bool | None = None
    rank: int | None = None
    norm: float | None = None
