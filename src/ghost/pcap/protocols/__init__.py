"""Trackers of protocols. Each reads the packets marked for it and makes one section of the analysis.

parser_dispatch        cuts marked packets out of a batch and hands them to the trackers
bounded_counts         counts and times of bounded size
udp_conversations      UDP conversations
udp_services           UDP services that owe an answer, and servers that give none
arp_tracker            ARP: unanswered requests, address claims
neighbour_resolution   requests for addresses of a segment, by ARP or NDP
icmp_tracker           ICMP and ICMPv6: echo pairs, errors
dhcp_tracker           DHCP and DHCPv6 messages by type, clients without an answer
dns_tracker            DNS queries and responses, over UDP and TCP
dns_question           the question of a message; registered names
dns_answers            addresses in answers
dns_open_questions     queries without a response so far
dns_failures           responses that report a failure
dns_long_names         names that carry data
http_tracker           HTTP/1 exchanges
http_errors            errors by client, host and method
http_paths             response times of a server's paths
host_names             host names in clear
tls_tracker            TLS handshakes and their failures
tls_record_stream      TLS records and handshake messages of one direction
tls_handshake_records  kernel: handshake records over several segments
tls_messages           hellos and alerts
tls_certificates       names and dates of a server's certificate
tls_session_tickets    session tickets of TLS 1.3
"""
