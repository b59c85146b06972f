"""Errors of the program around the engine: each message is a sentence for a person.

AppError
└── UsageError      the command line asks for something that cannot be meant; exit status 2
"""

from __future__ import annotations


class AppError(Exception):
    """Base of what the program itself reports."""


class UsageError(AppError):
    """The command line asks for something that cannot be meant."""
