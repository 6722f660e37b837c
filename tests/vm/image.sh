#!/bin/sh
# Makes a bootable image: sh image.sh TREE KERNEL PACKAGES TESTS DRIVER IMAGE, in a mount namespace of its own. The
# package is installed in it, as builders of images do it; its variants are there to be installed. KERNEL is an unpacked
# Debian kernel package. Beside IMAGE: IMAGE.initrd.
set -e
tree=$1 kernel=$2 packages=$3 tests=$4 driver=$5 image=$6
version=$(basename "$(echo "$kernel"/lib/modules/*)")
mount -t tmpfs -o size=2g tmpfs /mnt
mkdir /mnt/upper /mnt/work /mnt/root /mnt/early
mount -t overlay -o "lowerdir=$tree,upperdir=/mnt/upper,workdir=/mnt/work" overlay /mnt/root
root=/mnt/root

# Modules with what they need, in the order of loading: for the early system, and for the whole one.
closure() { for module in "$@"; do modprobe -d "$kernel" -S "$version" --show-depends "$module"; done | sed -n 's/^insmod //p' | awk '!seen[$1]++ {print $1}'; }
copy() { # DIRECTORY, list on standard input
    while read -r file; do
        install -D -m 644 "$file" "$1/lib/modules/$version/${file#"$kernel/lib/modules/$version/"}"
    done
}
mkdir -p "$root/usr/lib/modules/$version"
closure vhci-hcd dummy_hcd libcomposite usb_f_fs usbmon configfs overlay ext4 virtio_blk virtio_pci virtio_console autofs4 | copy "$root/usr"
cp "$kernel/lib/modules/$version"/modules.builtin* "$kernel/lib/modules/$version/modules.order" "$root/usr/lib/modules/$version/"
depmod -b "$root" "$version"

early=/mnt/early
mkdir -p "$early/bin" "$early/proc" "$early/sys" "$early/dev" "$early/new"
cp /bin/busybox "$early/bin/busybox"
closure virtio_pci virtio_blk ext4 | copy "$early"
closure virtio_pci virtio_blk ext4 | sed "s,^$kernel,," >"$early/order"
cat >"$early/init" <<'INIT'
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
while read -r module; do insmod "$module"; done </order
tries=0
while [ ! -b /dev/vda ] && [ $tries -lt 500 ]; do usleep 20000; tries=$((tries + 1)); done
mount -t ext4 /dev/vda /new
for part in proc sys dev; do mount -o move /$part /new/$part; done
exec switch_root /new /sbin/init
INIT
sed -i '1s,.*,#!/bin/busybox sh,' "$early/init"
chmod 755 "$early/init"
(cd "$early" && find . | cpio -o -H newc --quiet) >"$image.initrd"

# The machine.
echo 0123456789abcdef0123456789abcdef >"$root/etc/machine-id"
echo aoabridge-vm >"$root/etc/hostname"
printf '127.0.0.1 localhost\n127.0.1.1 aoabridge-vm\n' >"$root/etc/hosts"
: >"$root/etc/fstab"
touch "$root/etc/.updated" "$root/var/.updated" # no catching up at the first start
mkdir -p "$root/etc/systemd/journald.conf.d" "$root/etc/systemd/system-generators" "$root/etc/dpkg/dpkg.cfg.d"
printf '[Journal]\nStorage=volatile\n' >"$root/etc/systemd/journald.conf.d/vm.conf"
echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/vm"
# An emulated processor feels each program that starts: what this machine has no use for stays out.
for generator in "$root"/usr/lib/systemd/system-generators/*; do
    ln -s /dev/null "$root/etc/systemd/system-generators/${generator##*/}"
done
units=$root/etc/systemd/system
for unit in getty@tty1.service serial-getty@ttyS0.service console-getty.service getty.target systemd-binfmt.service \
    proc-sys-fs-binfmt_misc.automount e2scrub_all.timer e2scrub_reap.service apt-daily.timer apt-daily-upgrade.timer \
    dpkg-db-backup.timer fstrim.timer systemd-tmpfiles-clean.timer systemd-timesyncd.service systemd-logind.service \
    systemd-user-sessions.service systemd-update-utmp.service systemd-update-utmp-runlevel.service \
    systemd-random-seed.service systemd-sysctl.service systemd-journal-flush.service systemd-modules-load.service \
    systemd-ask-password-console.path systemd-ask-password-wall.path dbus.service dbus.socket kmod-static-nodes.service \
    modprobe@drm.service modprobe@efi_pstore.service modprobe@dm_mod.service modprobe@loop.service \
    modprobe@fuse.service sys-fs-fuse-connections.mount dev-hugepages.mount dev-mqueue.mount sys-kernel-debug.mount \
    sys-kernel-tracing.mount; do
    ln -sf /dev/null "$units/$unit"
done
for unit in multi-user sysinit; do mkdir -p "$units/$unit.target.wants"; done
mkdir -p "$root/unpacked" "$root/packages" "$root/tests"
cp "$packages"/*.deb "$root/packages/"
cp -r "$tests/vm" "$tests/fakes" "$root/tests/"
mount -t proc proc "$root/proc"
for package in "$root"/packages/*.deb; do
    case $package in *_7.0.*) continue ;; esac
    dpkg-deb -x "$package" "$root/unpacked"
    DEBIAN_FRONTEND=noninteractive chroot "$root" dpkg -i "/packages/${package##*/}"
done
umount "$root/proc"

# One phone is there before the device manager, another comes while the service starts.
rig='/usr/bin/python3 -B /tests/vm/vhci_phone.py'
cat >"$units/phones.service" <<UNIT
[Unit]
DefaultDependencies=no
Before=systemd-udevd.service systemd-udev-trigger.service
[Service]
Type=notify
NotifyAccess=main
ExecStartPre=/usr/sbin/modprobe vhci-hcd
ExecStart=$rig '{"phones": [{"name": "p1", "app": "known"}, {"name": "p2", "app": "known"}]}' /run/vhci.sock p1
StandardOutput=journal
UNIT
cat >"$units/second-phone.service" <<UNIT
[Unit]
After=phones.service
[Service]
Type=exec
ExecStart=/usr/bin/python3 -B /tests/vm/plug.py /run/vhci.sock p2 /run/second-phone
UNIT
cat >"$units/driver.service" <<UNIT
[Unit]
After=multi-user.target
[Service]
Type=exec
ExecStart=/bin/sh -c 'exec /unpacked/opt/aoabridge/*/bin/python -B /tests/vm/$driver'
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0
UNIT
ln -s ../phones.service "$units/sysinit.target.wants/phones.service"
for unit in second-phone driver; do ln -s "../$unit.service" "$units/multi-user.target.wants/$unit.service"; done
mke2fs -q -F -t ext4 -O ^has_journal -d "$root" "$image" 900M
