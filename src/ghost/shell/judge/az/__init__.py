"""Tier 2: which az commands only read.

read_commands     the table of reads, and what refuses a command
read_options      options a read may have, and the types of their values
jmespath_queries  what a `--query` takes from an answer
free_fields       fields in which anything may stand, secrets included
risks             what a command does that is no read; reads that answer with secrets
effects           that in words, for the person who approves
kql, log_tables   queries of logs in Kusto, and the tables they may read
resource_graph    queries of the Azure Resource Graph
"""
