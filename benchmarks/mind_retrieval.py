"""How well a question finds the notes that answer it: by words alone, by vectors alone, and by both.

python -m benchmarks.mind_retrieval          300 written notes among 1,700 made ones, 200 questions
python -m benchmarks.mind_retrieval --open   the half of the questions that may be tuned on, and no other

Stub embeddings, the real store. The bounds are those of the frozen half: both together find more than either alone.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.mind.retrieval.labelled import FROZEN, OPEN, SHA256, digests, questions
from tests.mind.retrieval.measuring import ASKED, TOP, WAYS, Quality, filled, found_by, quality

ASKED_ONLY = True
DIMENSIONS = (128, 384)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--open", action="store_true", help="leave the frozen half alone")
    asked = parser.parse_args(arguments or [])
    if digests() != SHA256:
        print("the set is not the one that was frozen", file=sys.stderr)
        return 1
    halves = {"open": questions(OPEN)}
    if not asked.open:
        halves["frozen"] = questions(FROZEN)
        halves["all"] = halves["open"] + halves["frozen"]
    print(f"dim  questions  search    recall@{TOP}  MRR@{ASKED}  any-hit@{TOP}  all-hit@{TOP}")
    held = True
    with tempfile.TemporaryDirectory(prefix="ghost-bench-") as folder:
        for dim in DIMENSIONS:
            with filled(Path(folder), dim) as ltm:
                searches = found_by(ltm, dim)
                for half, asked_questions in halves.items():
                    found = {way: quality(searches[way], asked_questions) for way in WAYS}
                    for way, measured in found.items():
                        print(f"{dim:3}  {half:9}  {way:8}  {_figures(measured)}", flush=True)
                    held &= half != "frozen" or beats_both(found)
    if not asked.open:
        print(f"hybrid beats both on the frozen half, in recall and MRR: {'held' if held else 'NOT HELD'}")
    return 0 if held else 1


def beats_both(found: dict[str, Quality]) -> bool:
    hybrid = found["hybrid"]
    return all(hybrid.recall > found[way].recall and hybrid.mrr > found[way].mrr for way in ("keyword", "vector"))


def _figures(measured: Quality) -> str:
    return f"{measured.recall:8.3f}  {measured.mrr:6.3f}  {measured.any_hit:9.3f}  {measured.all_hit:9.3f}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
