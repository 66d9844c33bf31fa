"""Real traffic with known faults, recorded by tcpdump in network namespaces.

A scene runs in a process of its own: its namespaces have no name and no route to the outside, only that process and
its children hold them, and every child dies with it. So the kernel takes all of it down, however the scene ends.
"""
