"""Numeric kernels over flat integer arrays, and what runs them: interpreted or compiled.

capture_records     kernels that walk pcap records and pcapng packet blocks
decoder             link, network and transport headers of each packet
tunnel_headers      what MPLS, VXLAN and GTP carry
payload_signatures  the first and last bytes of payloads
duplicates          packets that were captured twice
undecoded_packets   packets that are not decoded, by reason
packet_totals       counts over all packets
parser_selection    marked packets of a batch, by parser
address_table       a small number for each address
flow_hash           hash of a flow's two endpoints
time_bins           packets in bins of time and by pair of hosts
time_series         series over time, from the bins
pipeline            a batch through all kernels in one call
compilation         compiles kernels with numba; the cache of compiled code
object_file         compiled kernels as one file, loaded without numba
background_thread   work in a thread beside the interpreter
"""
