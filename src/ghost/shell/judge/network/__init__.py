"""Rules for what a command sends to a network: destinations, requests, names, packet filters.

request_urls      which hosts and URLs may be asked
http_get          paths and queries of a URL that only read
request_headers   values of request headers
admin_endpoints   services that control a machine or hold secrets, by port and path
exfiltration      data encoded into a URL, a header or a host name
curl_resolve      `--resolve` and `--connect-to`: the address that is really asked
host_pinning      names resolved, judged and pinned before a request runs
packet_filters    capture and display filters, which may not ask for payload
packet_protocols  which protocols a pcap filter can let through
"""
