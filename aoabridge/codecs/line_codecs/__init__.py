"""Each protocol as the commands ``decode`` and ``encode`` use it; imported one by one, by name."""

from aoabridge.codecs.line_codecs.base import Decoded, LineCodec, Options

__all__ = ["Decoded", "LineCodec", "Options"]
