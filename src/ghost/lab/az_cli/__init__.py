"""The Azure CLI of the lab: commands, options, exit codes and JSON, answered from the lab's world.

Commands, options, field names and exit codes are those of azure-cli 2.91; the values come from the world. The program
is `ghost.lab.programs.az`.
"""
