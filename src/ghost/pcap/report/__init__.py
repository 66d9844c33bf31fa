"""Reports of one capture, and of a folder of captures. They judge nothing.

single_capture      one capture from file to reports
capture_folder      a folder of captures, the worst first
capture_workers     several captures at once, in processes or on a Dask cluster
capture_facts       size, limits, measurements and method of a capture, in words
markdown_report     findings as Markdown
capture_page        one capture as an HTML page
page_frame          the frame of every HTML page
markup              HTML with everything escaped
time_charts         plots over time as SVG
packet_sequence     the packets of one conversation around the evidence
packet_arrows       an arrow a packet, for a sequence diagram
ladder              a conversation as a ladder diagram
conversation_table  the busiest pairs of hosts
output_files        names of output files; never overwrites a capture
progress_bar        progress on standard error
semantic/           the machine-readable summary
"""
