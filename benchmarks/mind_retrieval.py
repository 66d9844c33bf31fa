"""How well a question finds the text that answers it: by words alone, by vectors alone, and by both.

python -m benchmarks.mind_retrieval              both sets, with the stub
python -m benchmarks.mind_retrieval --open       of the own set the half that may be tuned on, and no other question
python -m benchmarks.mind_retrieval --model e5   with the model of the extra `embeddings`: an hour on one core

The own set: 200 questions on 300 written notes among 1,700 made ones. The foreign set: 60 paraphrased questions on help
of `az network` and manual pages, as this machine has them. "nothing" is the share of questions on daily life for which
hybrid search rightly says that nothing is close. The bounds are those of the own set's frozen half.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.mind.retrieval import foreign
from tests.mind.retrieval.labelled import FROZEN, OPEN, SHA256, Question, digests, made_notes, notes, questions
from tests.mind.retrieval.measuring import ASKED, TOP, WAYS, Quality, filled, found_by, quality

from ghost.config import Settings
from ghost.providers import EmbeddingsProvider, embeddings

ASKED_ONLY = True
DIMENSIONS = (128, 384)
Sets = dict[str, tuple[Mapping[str, str], dict[str, Sequence[Question]]]]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--open", action="store_true", help="leave the frozen half alone")
    parser.add_argument("--model", default="stub", choices=["stub", "e5"])
    asked = parser.parse_args(arguments or [])
    if digests() != SHA256 or foreign.digest() != foreign.QUESTIONS_SHA256:
        print("a set is not the one that was frozen", file=sys.stderr)
        return 1
    dims = DIMENSIONS if asked.model == "stub" else DIMENSIONS[:1]
    models = [embeddings(Settings(provider_embed=asked.model, vector_dim=dim)) for dim in dims]
    sets = _sets(only_open=asked.open)
    print(f"space                questions  search    recall@{TOP}  MRR@{ASKED}  any-hit@{TOP}  all-hit@{TOP}  nothing")
    held = True
    with tempfile.TemporaryDirectory(prefix="ghost-bench-") as folder:
        for model in models:
            for texts, parts in sets.values():
                held &= _measured(Path(folder), model, texts, parts)
    if not asked.open:
        print(f"hybrid beats both on the frozen half, in recall and MRR: {'held' if held else 'NOT HELD'}")
    return 0 if held else 1


def _sets(*, only_open: bool) -> Sets:
    own: dict[str, Sequence[Question]] = {"open": questions(OPEN)}
    if only_open:
        return {"own": (notes() | made_notes(), own)}
    own["frozen"] = questions(FROZEN)
    own["all"] = [*own["open"], *own["frozen"]]
    texts = foreign.texts()
    foreign_questions, left_out = foreign.questions(texts)
    print(
        f"the foreign set: {len(texts)} texts, {len(foreign_questions)} questions, {left_out} without their text here"
    )
    return {"own": (notes() | made_notes(), own), "foreign": (texts, {"foreign": foreign_questions})}


def _measured(
    folder: Path, model: EmbeddingsProvider, texts: Mapping[str, str], parts: Mapping[str, Sequence[Question]]
) -> bool:
    """Print the figures of one set in one space; return whether the bounds hold."""
    held = True
    with filled(folder, model, texts) as ltm:
        searches = found_by(ltm)
        off_topic = foreign.off_topic()
        nothing = sum(not searches["hybrid"](question) for question in off_topic) / len(off_topic)
        for part, asked in parts.items():
            found = {way: quality(searches[way], asked) for way in WAYS} if asked else {}
            for way, measured in found.items():
                last = f"  {nothing:7.2f}" if way == "hybrid" else ""
                print(f"{model.name[:19]:19}  {part:9}  {way:8}  {_figures(measured)}{last}", flush=True)
            held &= part != "frozen" or beats_both(found)
    return held


def beats_both(found: dict[str, Quality]) -> bool:
    hybrid = found["hybrid"]
    return all(hybrid.recall > found[way].recall and hybrid.mrr > found[way].mrr for way in ("keyword", "vector"))


def _figures(measured: Quality) -> str:
    return f"{measured.recall:8.3f}  {measured.mrr:6.3f}  {measured.any_hit:9.3f}  {measured.all_hit:9.3f}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
