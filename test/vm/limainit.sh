#!/bin/sh
# The init of a small image for Lima. It does what cloud-init does there, and no more.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev 2>/dev/null
mkdir -p /dev/pts /dev/shm; mount -t devpts devpts /dev/pts; mount -t tmpfs shm /dev/shm; mount -t tmpfs run /run; mount -t tmpfs tmp /tmp; chmod 1777 /tmp
mkdir -p /sys/fs/cgroup; mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -o remount,rw /
exec >/dev/ttyS0 2>&1 </dev/null
for m in virtio_net virtio_scsi sr_mod isofs button evdev overlay nf_tables virtio_rng 9pnet_virtio 9p; do modprobe -q $m; done
ip link set lo up
for i in $(seq 100); do test -e /dev/sr0 && break; sleep 0.1; done
mkdir -p /mnt/lima-cidata; mount -t iso9660 -o ro,mode=0700,dmode=0700,overriderockperm,exec,uid=0 /dev/sr0 /mnt/lima-cidata
export LIMA_CIDATA_MNT=/mnt/lima-cidata
. /mnt/lima-cidata/lima.env
echo "init: lima.env read for $LIMA_CIDATA_NAME"
hostname "lima-$LIMA_CIDATA_NAME"
grep -q "lima-$LIMA_CIDATA_NAME" /etc/hosts || echo "127.0.1.1 lima-$LIMA_CIDATA_NAME" >>/etc/hosts
mkdir -p /run/sshd
eth=$(ls /sys/class/net | grep -v lo | head -1)
busybox udhcpc -q -n -i "$eth" -s /udhcpc.sh -t 20
id "$LIMA_CIDATA_USER" >/dev/null 2>&1 || useradd -m -d "$LIMA_CIDATA_HOME" -u "$LIMA_CIDATA_UID" -s /bin/bash "$LIMA_CIDATA_USER"
echo "$LIMA_CIDATA_USER ALL=(ALL) NOPASSWD:ALL" >/etc/sudoers.d/lima; chmod 0440 /etc/sudoers.d/lima
mkdir -p "$LIMA_CIDATA_HOME/.ssh"
grep -oE '(ssh-(ed25519|rsa)|ecdsa-[a-z0-9-]+) [A-Za-z0-9+/=]+' /mnt/lima-cidata/user-data >"$LIMA_CIDATA_HOME/.ssh/authorized_keys"
chown -R "$LIMA_CIDATA_USER" "$LIMA_CIDATA_HOME/.ssh"; chmod 700 "$LIMA_CIDATA_HOME/.ssh"; chmod 600 "$LIMA_CIDATA_HOME/.ssh/authorized_keys"
ls /etc/ssh/ssh_host_ed25519_key >/dev/null 2>&1 || ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/ssh_host_ed25519_key
/usr/sbin/sshd
cat >/etc/acpi/power.sh <<'X'
#!/bin/sh
echo "init: power button"; pkill -TERM sshd; sync; mount -o remount,ro /; sync; echo o >/proc/sysrq-trigger
X
chmod 755 /etc/acpi/power.sh; printf 'event=button/power.*\naction=/etc/acpi/power.sh\n' >/etc/acpi/events/powerbtn; rm -f /etc/acpi/events/powerbtn-acpi-support
acpid
echo "init: boot.sh"
sh /mnt/lima-cidata/boot.sh
echo "init: done"
while :; do wait; sleep 3600; done
