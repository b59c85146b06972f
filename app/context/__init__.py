"""The context window of a chat: how full it is, what is left out, and the figures of replies."""
