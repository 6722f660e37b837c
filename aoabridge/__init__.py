"""aoabridge: Android phones on USB, joined to FRC NetworkTables 4."""

__all__ = ["__version__"]

__version__ = "0.1.0"
