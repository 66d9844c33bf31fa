"""The wire of the lab: what a capture at an interface shows of conversations, packet by packet.

Modules, from the ground: `frames` encodes, `simulation` keeps the time, `tcp_endpoint` is one end of a connection,
`network_paths` carries segments, `dialogues` are what applications say and `refusals` how services refuse,
`conversation_simulation` joins them, and `packet_generator` draws the conversations of a world.
"""
