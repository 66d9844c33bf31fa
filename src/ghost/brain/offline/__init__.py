"""An investigator without a model: reads the symptom, asks Azure, decides with `ghost.net`, and says why.

It calls the same tools as a model does, through the same gates, and executes nothing itself.
"""

from ghost.brain.offline.replay import OfflineBrain

__all__ = ["OfflineBrain"]
