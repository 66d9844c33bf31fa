"""What may run: a command line is parsed and judged by tables; nothing here starts a program.

command_line        splits a line into words as a POSIX shell does; finds operators and expansions
forbidden_commands  Tier 0: what never runs
grammar             Tier 1: the option grammar of each program, from `policy/programs/*.toml`
value_types         the types that grammars give to options and operands
user_tables         grammars that a person adds (`GHOST_POLICY_DIR`)
regex_cost          an upper bound on the backtracking of a pattern in such a table
classification      the verdict on a line: SAFE, RISKY or FORBIDDEN, with the rule that decided
decision            the type of that verdict
explanation         why a line is judged so, and the nearest SAFE form
az/                 Tier 2: az commands that only read, their options, queries and Kusto
network/            requests and filters: URLs, headers, names, packet filters, exfiltration
"""
