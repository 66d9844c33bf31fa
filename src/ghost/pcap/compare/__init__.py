"""Two captures: before and after, or the two ends of one path.

capture_pair      two captures from files to reports
rate_comparison   rates and ratios side by side, each with an assessment
comparability     whether a capture could have shown a fault
comparison_text   the comparison as Markdown and JSON
comparison_page   the comparison as an HTML page
path_ends         two ends of a path: loss, delay, copies and changes between them
packet_identity   packets as columns that can be compared
packet_matching   which packet of one capture is which of the other
resegmentation    TCP segments cut or joined on the path
header_rewrites   addresses, ports, options and DSCP changed on the path
clock_offset      the difference between the clocks of two captures
path_faults       faults between two ends as findings: severity, owner, first step
path_ends_report  the two ends as Markdown, HTML and JSON
"""
