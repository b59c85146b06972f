"""The inference engine: PyTorch, quantised weights, paged KV cache. Imports without torch.

`EngineClient` (in `inglenook.engine.client`) is the way in; what runs behind it is loaded when a model is.
"""
