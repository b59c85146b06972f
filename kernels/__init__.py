"""Operations of the engine: each one a contract, a plain PyTorch reference, and faster twins where they pay.

Nothing here knows of requests, files of models or the window, and nothing of ours is imported.
"""
