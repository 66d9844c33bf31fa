"""Tapes: a lab that answers commands as they were recorded, from the export of a session or from bodies Azure sent.

No world stands behind a tape, so nothing of it follows from our model of a network. What was not recorded is an error
of its own. A tape is input from outside: nothing in it is run, and nothing is written outside the lab's directory.
"""

from ghost.lab.tapes.playback import TAPE, TapeDirectory
from ghost.lab.tapes.recordings import Tape, read_tape

__all__ = ["TAPE", "Tape", "TapeDirectory", "read_tape"]
