"""A training of the head alone left the rest as it was in the release that it began from."""

from typing import Any

import pytest

from harness.errors import NotAdmitted
from harness.lifecycle.training import refuse_moved_backbone
from tests.lifecycle.example import changed, content, manifest, meaning, sha

HEAD = meaning("head")


def hold(training: dict[str, Any], **values: Any) -> None:
    """The release `parent` against a candidate with this training and these values."""
    after = changed(HEAD, training=training, **values)
    refuse_moved_backbone(manifest(HEAD, "parent"), manifest(after, "candidate"))


BACKBONE = {"towers__text__artifact__backbone": sha("trained on")}
ADAPTER = {"towers__text__artifact__adapter": sha("lora")}


class TestHeadOnly:
    @pytest.mark.parametrize(
        "began",
        [{"base": "parent"}, {"parent": "parent"}, {"base": content("head")}],
        ids=["base", "parent", "content"],
    )
    @pytest.mark.parametrize(("moved", "what"), [(BACKBONE, "backbone"), (ADAPTER, "adapter")])
    def test_what_moved_beside_the_head_is_named(self, began: dict[str, Any], moved: dict[str, Any], what: str) -> None:
        """With its tower, and both digests."""
        with pytest.raises(NotAdmitted, match=f"{what} of text: .* → {next(iter(moved.values()))[:16]}"):
            hold({"head_only": True, **began}, **moved)

    def test_all_that_moved_is_named_at_once(self) -> None:
        """Backbone and adapter."""
        with pytest.raises(NotAdmitted, match=r"backbone of text: .*; adapter of text: none → "):
            hold({"head_only": True, "base": "parent"}, **BACKBONE, **ADAPTER)

    def test_another_head_is_what_it_says(self) -> None:
        """Head, labels and threshold may move."""
        hold({"head_only": True, "base": "parent"}, towers__text__artifact__head=sha("other"), score__threshold=0.7)

    @pytest.mark.parametrize(
        "training",
        [{"base": "parent"}, {"head_only": True}, {"head_only": True, "base": "another"}],
        ids=["not of the head alone", "from where is not said", "from another release"],
    )
    def test_nothing_else_can_be_held(self, training: dict[str, Any]) -> None:
        """A rollback parent need not be what a training began from."""
        hold(training, **BACKBONE)

    def test_no_training_says_nothing(self) -> None:
        """As most releases."""
        refuse_moved_backbone(manifest(HEAD), manifest(changed(HEAD, **BACKBONE)))

    def test_weights_under_other_names_cannot_be_compared(self) -> None:
        """A classifier's file names its encoder's weights otherwise than the encoder's own."""
        hold({"head_only": True, "base": "parent"}, **BACKBONE, towers__text__artifact__architecture="BertModel2")
