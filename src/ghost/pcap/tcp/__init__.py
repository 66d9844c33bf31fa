"""TCP: headers, streams, retransmissions and round trips.

tcp_header           TCP header and options
stream_table         TCP streams by their endpoints
state_machine        what each packet changes, and where segments were lost
three_way_handshake  SYN, SYN-ACK, ACK
analysis_flags       Wireshark's analysis flags of a packet
scoreboard           segments sent and not acknowledged, and the gaps in them
duplicate_segments   copies of a packet, told from retransmissions
response_times       times to the ACK and to the first byte of an answer
evidence_frames      the first frames of each kind of event
stream_tracker       owns the state that the kernels advance
packed_rows          idle streams in few bytes
stream_state         the state at the end
client_roles         which end is the client of a stream that began before the capture
stream_endings       how a stream ended, for the application protocols
stream_view          streams as values of the model
"""
