"""Weights on disk: our own bounded readers of GGUF and safetensors, and the way to the canonical tensor names."""
