"""What a metric may be told in brackets behind its name."""

from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeGuard

Value: TypeAlias = int | float | str


@dataclass(frozen=True, slots=True)
class Parameter:
    """What a metric may be told in brackets: a whole number from 1, a probability, a share above 0, or one of `words`.

    The default is left out of the printed name unless `shown`; what is `bare` is written without its name.
    """

    default: Value
    kind: Literal["count", "grade", "probability", "share", "word"]
    words: tuple[str, ...] = ()
    shown: bool = False
    bare: bool = False

    @property
    def expected(self) -> str:
        if self.kind == "word":
            return " or ".join(repr(word) for word in self.words)
        if self.kind == "share":
            return "a number above 0, at most 1"
        if self.kind == "probability":
            return "a number between 0 and 1, both excluded"
        return "a whole number from 1 up"

    def admits(self, value: object) -> TypeGuard[Value]:
        match self.kind:
            case "count" | "grade":
                return type(value) is int and value >= 1
            case "probability":
                return type(value) is float and 0 < value < 1
            case "share":
                return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1
            case "word":
                return value in self.words
