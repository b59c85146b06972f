"""What is asked and shown in the pictures: a manual, a question about it, and an answer with everything in it."""

from __future__ import annotations

QUESTION = "How many kilograms of refrigerant does the outdoor unit hold?"
MANUAL = (
    ["1. Before you begin", "Read this manual before you install the heat pump.", "Keep it near the unit."],
    ["2. Siting", "Leave 60 centimetres of free space behind the unit.", "Do not place it below a bedroom window."],
    ["3. Electrical supply", "The unit needs a supply of its own with a 16 ampere breaker."],
    ["4. The refrigerant circuit", "The outdoor unit holds 1.2 kilograms of the refrigerant R290 (propane).",
     "The circuit is sealed at the factory and must never be topped up.",
     "Only a certified technician may open it."],
    ["5. Water side", "Fill the system to a pressure of 1.5 bar.", "Flush the filter after the first week."],
    ["6. Maintenance", "Clean the fins once a year with a soft brush.", "Have the unit inspected every two years."],
)  # fmt: skip

THOUGHT = """
The user wants to compute a Fibonacci number. The plain recursion takes exponential time, so I should not stop there.

A loop needs two numbers and is clear. The closed form is worth a mention, with the warning that floats lose digits
from about the 71st number on.
"""
ANSWER = """
Keep the last two numbers and add them, `n` times:

```python
def fibonacci(n: int) -> int:
    \"\"\"Return the nth Fibonacci number, counting from 0.\"\"\"
    before, now = 0, 1
    for _ in range(n):
        before, now = now, before + now
    return before
```

The loop follows from the definition $F_n = F_{n-1} + F_{n-2}$. There is also a closed form:

$$F_n = \\frac{\\varphi^n - \\psi^n}{\\sqrt{5}}, \\qquad \\varphi = \\frac{1 + \\sqrt{5}}{2}$$

| Way | Steps | Exact? |
| --- | ---: | --- |
| Plain recursion | about 1.6ⁿ | yes |
| The loop above | n | yes |
| Closed form | 1 | only up to about *n* = 70 |

Use the loop unless you need very large numbers.
"""
