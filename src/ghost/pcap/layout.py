"""Names of the columns and state fields that the kernels share. Numbers only.

All kernel state is flat 64-bit integer arrays: one packet, stream, side or segment is a row of fixed length, and a
field is `array[row * LENGTH + FIELD]`. Flat integers are what numba compiles well, and what a memoryview of the
same array serves quickly to the uncompiled interpreter.
"""

from __future__ import annotations

# Sequence numbers of TCP wrap around: a difference is masked, and one of half their space or more lies behind.
SEQ = 0xFFFFFFFF
HALF = 0x80000000

# A packet: what the reader knows, then what decoding finds.
OFFSET = 0  # of the packet's first byte in the buffer
CAPTURED = 1
WIRE = 2
TIME = 3  # ns since 1970
LINK = 4
NETWORK = 5  # 4, 6, NETWORK_ARP, NETWORK_OTHER; 0 where decoding failed
PROTOCOL = 6  # of the transport; 0 for a fragment without header
SOURCE = 7  # address ids
DESTINATION = 8
SOURCE_PORT = 9
DESTINATION_PORT = 10
TRANSPORT = 11  # offset of the transport header (of the ARP message) in the buffer
PAYLOAD = 12  # offset of the transport's payload in the buffer
LENGTH = 13  # of the payload on the wire
TTL = 14
IP_ID = 15
ENCAPSULATION = 16  # bits
SEQUENCE = 17
ACKNOWLEDGED = 18
CONTROL = 19  # TCP flags
WINDOW = 20
ETHERTYPE = 20  # of a frame that holds neither IP nor ARP; below 0x600 its DSAP, above 0xFFFF a PPP protocol
MSS = 21  # 0 where absent
SCALE = 22  # shift + 1, 0 where absent
SACK_PERMITTED = 23
DSACK_START = 24
DSACK_END = 25  # 0 where the segment reports no duplicate
TIMESTAMP = 26  # TCP timestamp value + 1, 0 where absent
FRAGMENT = 27  # 1 first fragment, 2 a later one
DUPLICATE = 28  # 1 where the same packet was seen just before; else ns since then where it may be, < 0 if hardly
MARK = 29  # which parser wants it
FRAME = 30
FLAGS = 31  # analysis flags, written by the TCP kernel
RECORDS = 31  # until then: what TLS records the payload holds, as `tls_tickets` tells them, and how a message ends
ENDS_BLANK, ENDS_OTHERWISE = 1 << 21, 1 << 22
END = 32  # where the captured bytes end in the buffer
STREAM_NUMBER = 33  # written by the TCP kernel
ROUND_TRIP = 34  # of the segment that this one acknowledges, in ns, 0 where none; written by the TCP kernel
ECHO = 35  # TCP timestamp echo reply + 1, 0 where absent
PACKET = 36

NETWORK_ARP = 1
NETWORK_OTHER = 2

MARK_ARP = 1
MARK_ICMP = 2
MARK_ICMP6 = 3
MARK_DNS = 4
MARK_DNS_TCP = 5
MARK_MDNS = 6
MARK_LLMNR = 7
MARK_TLS = 8  # handshake, alert or start of encryption, and what continues a handshake record
MARK_HTTP = 9  # begins with a request or status line
MARK_DHCP = 10
MARK_DHCP6 = 11
READ_MARKS = 12  # marks from here on are counted, not read
MARK_NTP = 12
MARK_QUIC = 13

ENCAPSULATIONS = ("vlan", "qinq", "pppoe", "gre", "ipip", "vxlan", "geneve", "mpls", "gtp")
IN_VLAN, IN_QINQ, IN_PPPOE, IN_GRE, IN_IPIP, IN_VXLAN, IN_GENEVE, IN_MPLS, IN_GTP = (1 << bit for bit in range(9))

LINK_NULL, LINK_ETHERNET, LINK_PPP, LINK_RAW, LINK_LOOP = 0, 1, 9, 101, 108
LINK_SLL, LINK_IPV4, LINK_IPV6, LINK_SLL2 = 113, 228, 229, 276

# An address: version, then four 32-bit words.
ADDRESS = 5

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16

# Kinds of events of one side of a stream. The first group are Wireshark's flags, in the order of the bits in FLAGS.
E_RETRANSMISSION = 0
E_FAST = 1
E_SPURIOUS = 2
E_RTO = 3
E_OUT_OF_ORDER = 4
E_LOST_SEGMENT = 5
E_ACKED_UNSEEN = 6
E_DUPLICATE_ACK = 7
E_ZERO_WINDOW = 8
E_ZERO_WINDOW_PROBE = 9
E_WINDOW_FULL = 10
E_WINDOW_UPDATE = 11
E_KEEP_ALIVE = 12
E_KEEP_ALIVE_ACK = 13
E_ZERO_WINDOW_PROBE_ACK = 14
E_REUSED_PORTS = 15
E_ACK_RTT = 16
# What the engine concludes.
E_LOST_UPSTREAM = 17
E_LOST_DOWNSTREAM = 18
E_NEEDLESS = 19
E_CAPTURE_GAP = 20
E_REORDERED = 21
E_SYN = 22
E_SYN_ACK = 23
E_FIN = 24
E_RST = 25
E_DATA_AFTER_RST = 26
E_COPY = 27  # of a data segment; then those that have Wireshark's flags of a repeat, of a timeout, of a duplicate ACK
E_COPY_RETRANSMISSION = 28
E_COPY_RTO = 29
E_COPY_ACK = 30
E_DOUBTFUL = 31  # a repeat that may be a copy
EVENTS = 32

# A stream.
S_LOW = 0  # address id << 16 | port of side 0
S_HIGH = 1
S_CLIENT = 2  # which side
S_KNOWN_BY = 3  # index into streams.KNOWN_BY
S_FIRST_TIME = 4
S_LAST_TIME = 5
S_FIRST_FRAME = 6
S_LAST_FRAME = 7
S_WIRE_BYTES = 8
S_ENCAPSULATION = 9
S_SYN_TIME = 10  # of the latest SYN, -1 before one
S_INITIAL_RTT = 11  # -1 while unknown
S_CLIENT_SYN_TIME = 12
S_SYN_ACK_TIME = 13
S_TO_SERVER = 14  # SYN to SYN-ACK, -1 while unknown
S_TO_CLIENT = 15  # SYN-ACK to ACK
S_COMPLETED = 16
S_SYN_REPEATS = 17
S_SYN_ACK_REPEATS = 18
S_REQUEST_OPEN = 19
S_REQUEST_TIME = 20
S_REQUEST_END = 21
S_REQUEST_UNACKED = 22
S_REQUEST_START = 23
REQUEST = 5  # columns from S_REQUEST_OPEN on
S_FIRST_RST = 24  # side + 1
S_UNPROMPTED = 25  # messages of the client after a pause, while earlier ones were acknowledged and not answered
S_GREETING = 26  # from the handshake to what the server said unasked, -1 where it did not
S_MIRRORED = 27  # a request of the other side, where it is only a guess who the client is
S_TLS = 32  # how far the opening of TLS 1.3 is, as `tls_tickets` counts
S_TICKET = 33  # length of what the server said first behind it
S_ASKED = 34  # 1 where the client said more than the handshake
S_NOTICES = 35  # short messages of the server after a pause, while no request waited
S_NUMBER = 36  # of the stream in the order of first frames
STREAM = 37

# Where a stream is found, by its number.
K_LOW = 0  # as in its row
K_HIGH = 1
K_FIRST_FRAME = 2
K_ROW = 3  # of the table; -1 - place where the row is packed
KEY = 4

# A side of a stream.
D_PACKETS = 0
D_PAYLOAD = 1
D_SEGMENTS = 2
D_FIRST_TIME = 3
D_LAST_TIME = 4
D_FIRST_FRAME = 5
D_BASE = 6  # initial sequence number, -1 while unknown
D_NEXT = 7  # next expected sequence number, -1 while unknown
D_NEXT_TIME = 8  # when it advanced
D_SEEN_END = 9  # highest sequence number that may be acknowledged, -1 while unknown
D_ACK = 10  # last acknowledgement number, -1 while unknown
D_ACK_TIME = 11
D_DUPLICATES = 12  # duplicate ACKs since the last new one, or ACKED_AHEAD
ACKED_AHEAD = -1  # the peer acknowledged what this side has not sent yet, and this side was silent since
D_SYN_WINDOW = 13  # 1 where the last window came with a SYN, unscaled
D_WINDOW = 14  # raw, -1 while unknown
D_SCALE = 15  # -1 unknown, -2 not in use
D_LAST_FLAGS = 16
D_TTL = 17  # -1 while unknown
D_TTL_MIN = 18
D_TTL_MAX = 19
D_RST_TTL = 20
D_MSS = 21
D_SACK = 22
D_SMALLEST_WINDOW = 23  # -1 while unknown
D_IN_FLIGHT = 24
D_LARGEST = 25
D_LARGEST_ACKED = 26
D_LARGEST_LOST = 27
D_SMALLEST_LOST = 28
D_RST_AFTER_FIN = 29
D_SILENCE = 30
D_MIN_RTT = 31  # -1 while unknown
D_HEAD = 32  # unacknowledged segments by end, -1 where empty
D_TAIL = 33
D_HELD = 34
D_HOLES = 35  # gaps not filled yet
D_HOLE_COUNT = 36
D_OFFERED_SCALE = 37  # shift this side announced, -1 none
D_LAST_WORDS = 38  # of what was sent: 0 unknown, or one of these
BLANK, NO_BLANK = 1, 2  # ends in an empty line, or does not
D_SAME_ACK_TIME = 39  # of the last packet that acknowledged no more than the one before, and is no copy; 0 before one
D_DOUBTED = 40  # acknowledged repeats that the receiver may still report as needless, -1 where none
D_DOUBTED_COUNT = 41
D_LAST_LOST = 42  # frame of the last segment judged lost, 0 before one
D_SILENT_FROM = 43  # when the longest silence began
D_FIRST_LOST = 44  # frame of the first segment judged lost, 0 before one
D_EVENTS = 45
SIDE = D_EVENTS + EVENTS

# A held segment, or a hole.
G_START = 0
G_END = 1
G_TIME = 2
G_FRAME = 3
G_NEXT = 4
G_PREVIOUS = 5
G_KIND = 6  # 0 sent once, 1 a repeat, 2 an original that was repeated, 3 not to be judged, 4 a repeat or a copy
G_SIZE = 7  # payload; in a hole the IP id of the packet that opened it
G_TIMESTAMP = 8  # of the packet, or of the one that opened the hole; 0 where absent
SEGMENT = 9

# Counters and limits of the TCP state.
N_ROWS = 0  # of streams in the table
N_ROW_CAPACITY = 1
N_POOL = 2
N_POOL_CAPACITY = 3
N_FREE = 4  # head of the list of free segments, -1 where empty
N_FREE_COUNT = 5
N_EVENTS = 6
N_EVENT_CAPACITY = 7
N_SAMPLES = 8
N_SAMPLE_CAPACITY = 9
N_SEED = 10  # of the slot table
N_LAST_SAMPLE = 11  # its nanoseconds
N_STREAMS = 12  # opened so far
N_KEY_CAPACITY = 13
N_WANTED = 14  # streams to unpack, whose numbers follow
COUNTERS = 15
MOST_WANTED = 128

# Samples of a side: key = side row * 4 + one of these. In the log one is the key above 32 bits of nanoseconds; where
# they do not suffice, two numbers: -1 - key, and the nanoseconds.
SAMPLE_RTT = 0
SAMPLE_DELTA = 1
SAMPLE_RESPONSE = 2
SAMPLE_REQUEST_ACKED = 3
SAMPLES = 4

SAMPLE_FRAMES = 5
"""Frames kept as evidence for each kind of event of a side."""
