"""The cosine that chance gives in a space of embeddings: unrelated texts have 0 in one model's, 0.8 in another's."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import numpy as np

from ghost.providers import EmbeddingsProvider

PERCENTILE = 99.9
MEASURE = 1
"""Changed with the texts or the percentile, so that what was kept is measured again."""


@cache
def unrelated_texts() -> tuple[list[str], list[str]]:
    """Return those of daily life, and those of networks."""
    whole = (files("ghost.mind") / "unrelated_texts.txt").read_text(encoding="utf-8")
    daily, networks = (
        [line for line in part.splitlines() if line and not line.startswith("#")] for part in whole.split("\n\n")
    )
    return daily, networks


def measured_floor(embeddings: EmbeddingsProvider) -> float:
    """Return a cosine that few pairs of unrelated texts exceed, one as a query. Raises `ProviderError`."""
    daily, networks = unrelated_texts()
    texts = [*daily, *networks]
    cosines = np.asarray(embeddings.embed(texts, "query")) @ np.asarray(embeddings.embed(texts, "document")).T
    are_pairs = ~np.eye(len(texts), dtype=np.bool_)
    are_pairs[len(daily) :, len(daily) :] = False
    return float(np.clip(np.percentile(cosines[are_pairs], PERCENTILE), 0.0, 0.99))
