"""The schema of `release.toml`, the file in which a person says what a release is."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from harness.file.toml import nearest

Strict = ConfigDict(extra="forbid", frozen=True, strict=True)
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Text = Annotated[str, Field(min_length=1)]
PoolingMode: TypeAlias = Literal["cls", "mean", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"]
Interaction: TypeAlias = Literal["bi", "cross", "late", "sparse", "two-stage", "fusion", "recorded"]
Format: TypeAlias = Literal["trec-run", "jsonl", "squad", "conll"]
ScoreType: TypeAlias = Literal["logit", "probability", "cosine", "dot", "squared-l2", "maxsim", "value", "tags"]


class Model(BaseModel):
    """Where the model folder is: `package:NAME/FOLDER`, `path:FOLDER` from the release's own, `hf:ORG/NAME@COMMIT`."""

    model_config = Strict

    source: Annotated[str, Field(pattern=r"^(package:[A-Za-z_]\w*(/.+)?|path:.+|hf:[^/@]+/[^/@]+@[0-9a-f]{40})$")]

    @property
    def scheme(self) -> str:
        return self.source.partition(":")[0]

    @property
    def place(self) -> str:
        return self.source.partition(":")[2]


class Input(BaseModel):
    """`max_length` counts the model's own tokens, special ones included."""

    model_config = Strict

    max_length: Annotated[int, Field(gt=0)] | None = None


class SidePrompts(BaseModel):
    """What is put before a query's or a document's text; None where release.toml does not say."""

    model_config = Strict

    query: str | None = None
    document: str | None = None


class PromptTable(SidePrompts):
    """The prompts, and under a suite's name those that depart from them on that suite."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)
    __pydantic_extra__: dict[str, SidePrompts]

    @property
    def suites(self) -> dict[str, SidePrompts]:
        return self.__pydantic_extra__

    @model_validator(mode="before")
    @classmethod
    def _sides_or_suites(cls, written: Any) -> Any:
        for key, value in written.items() if isinstance(written, dict) else ():
            if key not in cls.model_fields and not isinstance(value, dict):
                meant = nearest(str(key), list(cls.model_fields))
                raise ValueError(
                    f"`{key}` is neither `query`, `document` nor the table of a suite"
                    + (f"; did you mean `{meant}`?" if meant else "")
                )
        return written


class ReadoutOverride(BaseModel):
    model_config = Strict

    pooling: PoolingMode | None = None


class Override(BaseModel):
    """What departs from the model folder's own files."""

    model_config = Strict

    readout: ReadoutOverride = ReadoutOverride()


class Recorded(BaseModel):
    """Outputs made elsewhere. `path` counts from the release folder; `revision` is part of the release's meaning."""

    model_config = Strict

    format: Format
    path: Text
    score_type: ScoreType
    revision: str | None = None

    @field_validator("format")
    @classmethod
    def _supported(cls, format: Format) -> Format:
        if format in ("squad", "conll"):
            raise ValueError(f"recorded outputs in {format} format are not supported by this version")
        return format

    @model_validator(mode="after")
    def _ranked_by_a_number(self) -> "Recorded":
        if self.format == "trec-run" and self.score_type == "tags":
            raise ValueError("a TREC run ranks documents by a number, so its `score_type` cannot be tags")
        return self


class ReleaseDefinition(BaseModel):
    """release.toml as written. A `bi` release names a model, a `recorded` one a file of outputs, and neither both."""

    model_config = Strict

    schema_: Annotated[Literal["harness.release.v1"], Field(alias="schema")]
    name: Name
    parent: Name | None = None
    interaction: Interaction
    model: Model | None = None
    input: Input = Input()
    prompts: PromptTable = PromptTable()
    override: Override = Override()
    recorded: Recorded | None = None

    @model_validator(mode="before")
    @classmethod
    def _other_kinds_have_other_keys(cls, written: Any) -> Any:
        # An unsupported interaction is the finding then, not that its keys are unknown here.
        if isinstance(written, dict) and written.get("interaction") not in ("bi", "recorded"):
            return {key: value for key, value in written.items() if key in ("schema", "name", "interaction")}
        return written

    @field_validator("interaction")
    @classmethod
    def _supported(cls, interaction: Interaction) -> Interaction:
        if interaction not in ("bi", "recorded"):
            raise ValueError(f"{interaction!r} is not supported by this version, only 'bi' and 'recorded' are")
        return interaction

    @model_validator(mode="after")
    def _whole(self) -> "ReleaseDefinition":
        if self.parent == self.name:
            raise ValueError("a release cannot be its own `parent`")
        needed, barred = ("model", "recorded") if self.interaction == "bi" else ("recorded", "model")
        if getattr(self, needed) is None:
            raise ValueError(f"a {self.interaction} release needs [{needed}]")
        if getattr(self, barred) is not None:
            raise ValueError(f"a {self.interaction} release has no [{barred}]")
        if self.interaction == "recorded":
            for table in ("input", "prompts", "override"):
                if table in self.model_fields_set:
                    raise ValueError(f"a recorded release has no [{table}]: how its outputs were made is not observed")
        return self

    def prompts_for(self, suite_name: str | None = None) -> SidePrompts:
        """What release.toml says of the prompts on one suite; without a name, on a suite that it doesn't mention."""
        special = self.prompts.suites.get(suite_name, SidePrompts()) if suite_name is not None else SidePrompts()
        return SidePrompts(
            query=self.prompts.query if special.query is None else special.query,
            document=self.prompts.document if special.document is None else special.document,
        )
