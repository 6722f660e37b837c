"""The phone's side, pure: its USB identity and port, its byte stream, lines, messages and session."""
