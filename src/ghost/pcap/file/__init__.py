"""Capture files: bytes, records and blocks. Nothing inside a packet is decoded here.

byte_source     the bytes of a file, hashed; read ahead by a thread, or inflated
capture_format  the format of a file by its first bytes; how to convert other formats
capture_reader  pcap and pcapng records as rows of packets, a buffer at a time
pcapng_blocks   pcapng blocks without packets: interfaces, drop counters
standard_input  a capture on standard input, kept in a temporary file
"""
