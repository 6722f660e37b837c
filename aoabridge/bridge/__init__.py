"""Decisions of the relay, pure: what phones may put, what they get, and when."""
