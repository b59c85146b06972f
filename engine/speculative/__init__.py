"""Guessing the next tokens cheaply and checking several at once; what is returned is exactly what plain decoding returns.

A draft is accepted if and only if it equals the token that the sampler draws at its place, with the noise keyed to
that place. So speculation changes neither a reply nor the distribution, only how many steps it takes.
"""
