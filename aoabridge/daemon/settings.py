"""From the configuration file's sections to what each part of the bridge takes."""

from aoabridge.adapters.nt import NtSettings
from aoabridge.adapters.nt_targets import NtTarget
from aoabridge.bridge.core import CoreSettings
from aoabridge.config import Config
from aoabridge.config.sections import NtSection
from aoabridge.phone.aoa import Identity
from aoabridge.phone.filter import DeviceName, DeviceRules

__all__ = ["core_settings", "device_rules", "identity", "nt_settings", "nt_target"]


def core_settings(config: Config) -> CoreSettings:
    """The relay's part."""
    own = [f"/AOABridge/{config.name}/*", "/AOABridge/.bridges/*", "/Elastic/RobotNotifications"]
    if config.nt.alerts:
        own.append(f"/SmartDashboard/{config.nt.alerts}/*")
    roots = (("FRC", config.sources.frc), ("J519", config.sources.j519), ("Teleop", config.sources.teleop))
    own += [f"/{root}/{source.name}/*" for root, sources in roots for source in sources if source.enabled]
    for source in config.sources.frc:
        if source.enabled and source.write_fms_info:
            own.append("/FMSInfo/*")
        if source.enabled and source.write_driver_station:
            own.append("/DriverStation/*")
    return CoreSettings(
        relay=config.relay,
        access=config.access,
        topics_period_s=config.phone.topics_period_s,
        heartbeat=config.phone.heartbeat,
        own_patterns=tuple(own),
    )


def nt_target(nt: NtSection) -> NtTarget:
    """Where the robot's server may be."""
    return NtTarget(team=nt.team, servers=nt.server, port=nt.port)


def nt_settings(config: Config) -> NtSettings:
    """The NetworkTables client's part."""
    nt = config.nt
    return NtSettings(
        identity=f"aoabridge-{config.name}",
        target=nt_target(nt),
        embedded=nt.embedded,
        listen=nt.listen,
        port=nt.port,
        period_ms=nt.period_ms,
    )


def identity(config: Config) -> Identity:
    """The strings of the accessory handshake."""
    phone = config.phone
    return Identity(phone.manufacturer, phone.model, phone.version, phone.description, phone.uri, phone.serial)


def device_rules(config: Config) -> DeviceRules:
    """Which USB devices are taken, and the named phones."""
    devices = config.devices
    return DeviceRules(
        max=devices.max,
        accept=devices.accept,
        allow=devices.allow,
        deny=devices.deny,
        reset_stuck=devices.reset_stuck,
        devices=tuple(
            DeviceName(
                name=device.name,
                serial=device.serial,
                port=device.port,
                put_allow=device.put_allow,
                put_deny=device.put_deny,
                subscribe_allow=device.subscribe_allow,
                subscribe_deny=device.subscribe_deny,
            )
            for device in config.device
        ),
    )
