"""The inside of a simulated machine: the read commands that run-command may run there, answered from the world.

Nothing is executed. What a command says of other machines is what `ghost.net.walk` decides for its packets.
"""

from ghost.lab.guest.linux_tools import run_script
from ghost.lab.guest.powershell import run_powershell

__all__ = ["run_powershell", "run_script"]
