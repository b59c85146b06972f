"""Chat templates that work as those of common model families do, written anew and short."""

from __future__ import annotations

_ALTERNATE = (
    "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
)
FAMILIES = {
    "chatml with a default system message": (
        "{% for m in messages %}{% if loop.first and m.role != 'system' %}"
        "{{ '<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n' }}{% endif %}"
        "{{ '<|im_start|>' ~ m.role ~ '\n' ~ m.content ~ '<|im_end|>\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
    ),
    "llama 2 and mistral 1": (
        "{{ bos_token }}{% for m in messages %}" + _ALTERNATE + "{% if m.role == 'user' %}{{ ' [INST] ' + m.content + ' [/INST]' }}"
        "{% elif m.role == 'assistant' %}{{ ' ' + m.content + eos_token }}"
        "{% else %}{{ raise_exception('Only user and assistant roles are supported!') }}{% endif %}{% endfor %}"
    ),
    "mistral 3 and nemo": (
        "{%- if messages[0]['role'] == 'system' %}{%- set system_message = messages[0]['content'] %}"
        "{%- set loop_messages = messages[1:] %}{%- else %}{%- set loop_messages = messages %}{%- endif %}\n"
        "{%- if not tools is defined %}{%- set tools = none %}{%- endif %}\n{{- bos_token }}\n"
        "{%- set ns = namespace(index=0) %}{%- for m in loop_messages %}"
        "{%- if (m['role'] == 'user') != (ns.index % 2 == 0) %}{{- raise_exception('roles must alternate') }}{%- endif %}"
        "{%- set ns.index = ns.index + 1 %}{%- endfor %}\n"
        "{%- for m in loop_messages %}{%- if m['role'] == 'user' %}\n{%- if tools is not none and (m == loop_messages[-1]) %}"
        "{{- '[AVAILABLE_TOOLS] [' }}{%- endif %}{%- if loop.last and system_message is defined %}"
        "{{- '[INST] ' + system_message + '\n\n' + m['content'] + '[/INST]' }}{%- else %}"
        "{{- '[INST] ' + m['content'] + '[/INST]' }}{%- endif %}{%- else %}{{- ' ' + m['content'] | trim + eos_token }}"
        "{%- endif %}{%- endfor %}\n"
    ),
    "llama 3.1": (
        "{{- bos_token }}\n{%- if not date_string is defined %}\n    {%- if strftime_now is defined %}\n"
        "        {%- set date_string = strftime_now('%d %b %Y') %}\n    {%- else %}\n"
        "        {%- set date_string = '26 Jul 2024' %}\n    {%- endif %}\n{%- endif %}\n"
        "{%- if messages[0]['role'] == 'system' %}{%- set system = messages[0]['content'] | trim %}"
        "{%- set messages = messages[1:] %}{%- else %}{%- set system = '' %}{%- endif %}\n"
        "{{- '<|start_header_id|>system<|end_header_id|>\n\n' }}\n{%- if tools is not none %}{{- 'Environment: ipython\n' }}{%- endif %}"
        "{{- 'Cutting Knowledge Date: December 2023\nToday Date: ' + date_string + '\n\n' + system + '<|eot_id|>' }}\n"
        "{%- for m in messages %}{%- if not (m.role == 'ipython' or 'tool_calls' in m) %}"
        "{{- '<|start_header_id|>' + m['role'] + '<|end_header_id|>\n\n' + m['content'] | trim + '<|eot_id|>' }}\n"
        "{%- elif m.tool_calls | length != 1 %}{{- raise_exception('one call only') }}{%- endif %}{%- endfor %}\n"
        "{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{%- endif %}\n"
    ),
    "gemma 2": (
        "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
        "{% for m in messages %}" + _ALTERNATE + "{% if m['role'] == 'assistant' %}{% set role = 'model' %}{% else %}{% set role = m['role'] %}"
        "{% endif %}{{ '<start_of_turn>' + role + '\n' + m['content'] | trim + '<end_of_turn>\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"
    ),
    "gemma 3": (
        "{{ bos_token }}\n{%- if messages[0]['role'] == 'system' -%}\n    {%- if messages[0]['content'] is string -%}\n"
        "        {%- set prefix = messages[0]['content'] + '\n\n' -%}\n    {%- else -%}\n"
        "        {%- set prefix = messages[0]['content'][0]['text'] + '\n\n' -%}\n    {%- endif -%}\n"
        "    {%- set rest = messages[1:] -%}\n{%- else -%}\n    {%- set prefix = '' -%}\n    {%- set rest = messages -%}\n{%- endif -%}\n"
        "{%- for m in rest -%}\n    {%- if (m['role'] == 'user') != (loop.index0 % 2 == 0) -%}\n"
        "        {{ raise_exception('Conversation roles must alternate') }}\n    {%- endif -%}\n"
        "    {%- set role = 'model' if m['role'] == 'assistant' else m['role'] -%}\n"
        "    {{ '<start_of_turn>' + role + '\n' + (prefix if loop.first else '') }}\n"
        "    {%- if m['content'] is string -%}\n        {{ m['content'] | trim }}\n    {%- elif m['content'] is iterable -%}\n"
        "        {%- for item in m['content'] -%}{{ item['text'] | trim }}{%- endfor -%}\n    {%- else -%}\n"
        "        {{ raise_exception('Invalid content type') }}\n    {%- endif -%}\n    {{ '<end_of_turn>\n' }}\n{%- endfor -%}\n"
        "{%- if add_generation_prompt -%}\n    {{ '<start_of_turn>model\n' }}\n{%- endif -%}\n"
    ),
    "phi 3": (
        "{% for m in messages %}{% if m['role'] == 'system' %}{{ '<|system|>\n' + m['content'] + '<|end|>\n' }}"
        "{% elif m['role'] == 'user' %}{{ '<|user|>\n' + m['content'] + '<|end|>\n' }}"
        "{% elif m['role'] == 'assistant' %}{{ '<|assistant|>\n' + m['content'] + '<|end|>\n' }}{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% else %}{{ eos_token }}{% endif %}"
    ),
    "qwen 2.5": (
        "{%- if tools %}\n    {{- '<|im_start|>system\n# Tools' }}\n    {%- for tool in tools %}{{- tool | tojson }}{%- endfor %}\n"
        "{%- else %}\n    {%- if messages[0]['role'] == 'system' %}\n        {{- '<|im_start|>system\n' + messages[0]['content'] + '<|im_end|>\n' }}\n"
        "    {%- else %}\n        {{- '<|im_start|>system\nYou are Qwen.<|im_end|>\n' }}\n    {%- endif %}\n{%- endif %}\n"
        "{%- for m in messages %}\n    {%- if (m.role == 'user') or (m.role == 'system' and not loop.first) or (m.role == 'assistant' and not m.tool_calls) %}\n"
        "        {{- '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>' + '\n' }}\n    {%- elif m.role == 'assistant' %}\n"
        "        {{- '<|im_start|>' + m.role }}\n    {%- endif %}\n{%- endfor %}\n"
        "{%- if add_generation_prompt %}\n    {{- '<|im_start|>assistant\n' }}\n{%- endif %}\n"
    ),
    "qwen 3": (
        "{%- if messages[0].role == 'system' %}\n    {{- '<|im_start|>system\n' + messages[0].content + '<|im_end|>\n' }}\n{%- endif %}\n"
        "{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}\n"
        "{%- for m in messages[::-1] %}\n    {%- set index = (messages|length - 1) - loop.index0 %}\n"
        "    {%- if ns.multi_step_tool and m.role == 'user' and m.content is string and not(m.content.startswith('<tool_response>') and m.content.endswith('</tool_response>')) %}\n"
        "        {%- set ns.multi_step_tool = false %}\n        {%- set ns.last_query_index = index %}\n    {%- endif %}\n{%- endfor %}\n"
        "{%- for m in messages %}\n    {%- set content = m.content if m.content is string else '' %}\n"
        "    {%- if m.role == 'user' or (m.role == 'system' and not loop.first) %}\n        {{- '<|im_start|>' + m.role + '\n' + content + '<|im_end|>\n' }}\n"
        "    {%- elif m.role == 'assistant' %}\n        {%- set thoughts = '' %}\n        {%- if m.reasoning_content is string %}\n"
        "            {%- set thoughts = m.reasoning_content %}\n        {%- elif '</think>' in content %}\n"
        "            {%- set thoughts = content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') %}\n"
        "            {%- set content = content.split('</think>')[-1].lstrip('\n') %}\n        {%- endif %}\n"
        "        {%- if loop.index0 > ns.last_query_index and thoughts %}\n"
        "            {{- '<|im_start|>assistant\n<think>\n' + thoughts.strip('\n') + '\n</think>\n\n' + content.lstrip('\n') }}\n"
        "        {%- else %}\n            {{- '<|im_start|>assistant\n' + content }}\n        {%- endif %}\n        {{- '<|im_end|>\n' }}\n"
        "    {%- endif %}\n{%- endfor %}\n{%- if add_generation_prompt %}\n    {{- '<|im_start|>assistant\n' }}\n"
        "    {%- if enable_thinking is defined and enable_thinking is false %}\n        {{- '<think>\n\n</think>\n\n' }}\n    {%- endif %}\n{%- endif %}\n"
    ),
    "deepseek r1 distilled": (
        "{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}"
        "{% set ns = namespace(is_first=false, is_tool=false, system_prompt='') %}"
        "{%- for m in messages %}{%- if m['role'] == 'system' %}{% set ns.system_prompt = m['content'] %}{%- endif %}{%- endfor %}"
        "{{ bos_token }}{{ ns.system_prompt }}{%- for m in messages %}{%- if m['role'] == 'user' %}{%- set ns.is_tool = false -%}"
        "{{ '<｜User｜>' + m['content'] }}{%- endif %}{%- if m['role'] == 'assistant' and m['content'] is not none %}"
        "{% set content = m['content'] %}{% if '</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}"
        "{{ '<｜Assistant｜>' + content + '<｜end▁of▁sentence｜>' }}{%- endif %}{%- endfor -%}"
        "{% if add_generation_prompt and not ns.is_tool %}{{ '<｜Assistant｜><think>\\n' }}{% endif %}"
    ),
    "smollm 3": (
        "{%- set mode = '/think' if not enable_thinking is defined or enable_thinking else '/no_think' -%}\n"
        "{%- if messages[0].role == 'system' -%}\n  {%- if '/no_think' in messages[0].content -%}\n    {%- set mode = '/no_think' -%}\n  {%- endif -%}\n"
        "  {%- set custom = messages[0].content.replace('/no_think', '').replace('/think', '').rstrip() -%}\n{%- endif -%}\n"
        "{{- '<|im_start|>system\n' -}}\n{{- 'Today Date: ' ~ strftime_now('%d %B %Y') ~ '\n' -}}\n{{- 'Reasoning Mode: ' + mode + '\n\n' -}}\n"
        "{%- if custom is defined -%}{{- custom + '\n\n' -}}{%- endif -%}\n{{- '<|im_end|>\n' -}}\n"
        "{%- for m in messages -%}\n  {%- set content = m.content if m.content is string else '' -%}\n  {%- if m.role == 'user' -%}\n"
        "    {{ '<|im_start|>' + m.role + '\n' + content + '<|im_end|>\n' }}\n  {%- elif m.role == 'assistant' -%}\n    {% generation %}\n"
        "    {%- if mode == '/think' -%}\n      {{ '<|im_start|>assistant\n' + content.lstrip('\n') + '<|im_end|>\n' }}\n    {%- else -%}\n"
        "      {{ '<|im_start|>assistant\n<think>\n\n</think>\n' + content.lstrip('\n') + '<|im_end|>\n' }}\n    {%- endif -%}\n    {% endgeneration %}\n"
        "  {%- endif -%}\n{%- endfor -%}\n{%- if add_generation_prompt -%}\n  {{ '<|im_start|>assistant\n' }}\n{%- endif -%}\n"
    ),
    "granite 3": (
        "{%- if messages[0]['role'] == 'system' %}\n{%- set text = messages[0]['content'] %}\n{%- set rest = messages[1:] %}\n{%- else %}\n"
        "{%- set text = 'Knowledge Cutoff Date: April 2024.\nToday\\'s Date: ' + strftime_now('%B %d, %Y') + '.' %}\n{%- set rest = messages %}\n{%- endif %}\n"
        "{{- '<|start_of_role|>system<|end_of_role|>' + text + '<|end_of_text|>\n' }}\n"
        "{%- for m in rest %}\n{{- '<|start_of_role|>' + m['role'] + '<|end_of_role|>' + m['content'] + '<|end_of_text|>\n' }}\n"
        "{%- if loop.last and add_generation_prompt %}\n{{- '<|start_of_role|>assistant' }}\n"
        "{%- if controls %}\n{{- ' ' + controls | tojson() }}\n{%- endif %}\n{{- '<|end_of_role|>' }}\n{%- endif %}\n{%- endfor %}"
    ),
    "olmo 2": (
        "{{ bos_token }}{% for m in messages %}{% if m['role'] == 'system' %}{{ '<|system|>\n' + m['content'] + '\n' }}"
        "{% elif m['role'] == 'user' %}{{ '<|user|>\n' + m['content'] + '\n' }}{% elif m['role'] == 'assistant' %}"
        "{% if not loop.last %}{{ '<|assistant|>\n' + m['content'] + eos_token + '\n' }}"
        "{% else %}{{ '<|assistant|>\n' + m['content'] + eos_token }}{% endif %}{% endif %}"
        "{% if loop.last and add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}{% endfor %}"
    ),
}  # fmt: skip
