"""The audit: folds every log of a store again and compares each row with what that gives."""
