"""The prompts: their wording as versioned files, and how a message is put together from them.

A version is a folder. Its files are never changed once it was released, because logs name them by
id and hash: another wording is another version.
"""

from processor.interpreter.prompts.standard import BUDGET_TOKENS, RenderState, StandardPrompts
from processor.interpreter.prompts.texts import Condition

__all__ = ["BUDGET_TOKENS", "Condition", "RenderState", "StandardPrompts"]
