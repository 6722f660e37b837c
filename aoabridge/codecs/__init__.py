"""Bytes to values and back, without any IO."""
