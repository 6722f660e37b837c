"""Host overrides of a case as a configuration file, and snapshots of the emulated bus as the product sees them."""

import json

from aoabridge.config import parse_config
from aoabridge.phone.aoa import UsbDevice, UsbInterface

__all__ = ["config_of", "config_text", "usb_device"]


def config_text(host, **more):
    """TOML with one dotted key per override."""
    return "".join(f"{key} = {_toml(value)}\n" for key, value in {**host, **more}.items())


def _toml(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def config_of(host, **more):
    """(configuration, None) or (None, the text of every error)."""
    result = parse_config(config_text(host, **more), "case.toml", host="bench")
    if result.config is None:
        return None, "; ".join(f"{error.key}: {error}" for error in result.errors)
    return result.config, None


def usb_device(shown):
    """The product's snapshot class from an emulated sysfs directory."""
    attributes = shown.attributes
    return UsbDevice(
        port=shown.name,
        vendor=int(attributes["idVendor"], 16),
        product=int(attributes["idProduct"], 16),
        busnum=int(attributes["busnum"]),
        devnum=int(attributes["devnum"]),
        serial=attributes.get("serial", ""),
        maker=attributes.get("manufacturer", ""),
        model=attributes.get("product", ""),
        klass=int(attributes["bDeviceClass"], 16),
        subclass=int(attributes["bDeviceSubClass"], 16),
        protocol=int(attributes["bDeviceProtocol"], 16),
        speed_mbps=float(attributes["speed"]),
        configuration=int(attributes["bConfigurationValue"] or 0),
        authorized=attributes["authorized"] != "0",
        power_control=attributes["power/control"],
        peer=shown.peer,
        interfaces=tuple(_interface(interface) for interface in shown.interfaces),
    )


def _interface(shown):
    attributes = shown.attributes
    return UsbInterface(
        number=int(attributes["bInterfaceNumber"], 16),
        klass=int(attributes["bInterfaceClass"], 16),
        subclass=int(attributes["bInterfaceSubClass"], 16),
        protocol=int(attributes["bInterfaceProtocol"], 16),
        text=attributes.get("interface", ""),
        driver=shown.driver or "",
    )
