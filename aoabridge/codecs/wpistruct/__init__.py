"""WPILib structs: schema text to codecs, and the inline form that phones read and write."""

from aoabridge.codecs.wpistruct.compiler import Encoded, StructCodec
from aoabridge.codecs.wpistruct.layout import Field
from aoabridge.codecs.wpistruct.limits import Limits
from aoabridge.codecs.wpistruct.names import schema_topic_type, split_type_string
from aoabridge.codecs.wpistruct.registry import Conflict, InlineAdded, InlineCheck, SchemaRegistry

__all__ = [
    "Conflict",
    "Encoded",
    "Field",
    "InlineAdded",
    "InlineCheck",
    "Limits",
    "SchemaRegistry",
    "StructCodec",
    "schema_topic_type",
    "split_type_string",
]
