"""Output processing and audit: what remains of a command after it ran.

command_output      decode, redact, truncate, redact again
credential_answers  answers of commands that print credentials by design
cut_output          what the end of an output that was cut off leaves in doubt
truncation          keeps output within a model's budget
bounded_json        JSON read and written within bounds of memory
kept_output         all of a long output in a file beside the audit
anonymization       private mode: placeholders for addresses, subnets and ids
private_addresses   private addresses in a text, in every spelling
audit               one record a command, chained by hash
intent              the record that a command leaves before it runs
"""
