#!/bin/bash
# The first process of an emulated machine of arm64. The kernel unpacks the root file
# system into its first one, below which nothing can be pivoted, so it moves to a disk
# before it tries the program as root and as an ordinary user. Each check prints "ok: " or
# "not ok: ".
export PATH=/usr/sbin:/usr/bin:/sbin:/bin PAGER=cat HOME=/root
if [ "$1" != moved ]; then
	mount -t proc proc /proc
	mount -t sysfs sysfs /sys
	mount -t devtmpfs devtmpfs /dev
	mkdir /new
	modprobe -a virtio_pci virtio_blk ext4
	mount -t ext4 /dev/vda /new
	tar -C / --one-file-system --exclude=./new --exclude=./proc --exclude=./sys --exclude=./dev -cf - . | tar -C /new -xf -
	mkdir -p /new/proc /new/sys /new/dev
	mount --move /proc /new/proc
	mount --move /sys /new/sys
	mount --move /dev /new/dev
	cd /new && mount --move . / && exec chroot . /bin/bash /arm64.sh moved
fi
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t tmpfs -o mode=755 tmpfs /run
mount -t cgroup2 cgroup2 /sys/fs/cgroup
ip link set lo up
modprobe overlay
exec <>/dev/ttyAMA0 >&0 2>&1
ln -s /proc/self/fd /dev/fd

check() { # what holds, then a command that shows it
	if eval "$2"; then echo "ok: $who: $1"; else echo "not ok: $who: $1 ($2)"; fi
}
see() {
	seen=$("$@" 2>&1)
	code=$?
	echo "+ $*"
	echo "$seen"
}
has() { echo "$seen" | grep -q -- "$1"; }

common() {
	cd ~ && git config --global user.name one
	git config --global user.email one@example.org
	mkdir -p ~/project && cd ~/project && git init -q . && echo 1 >file && git add file && git commit -qm one
	check "there is a repository" 'git rev-parse HEAD'
	see litterbox doctor
	check "the isolation is full" 'has "^isolation: full"'
	see litterbox create box
	check "a sandbox can be made" 'test $code = 0'
	see litterbox exec box -- sh -c 'uname -m; echo work >made'
	check "it runs programs of arm64" 'has "^aarch64"'
	check "its work is on the branch" 'test "$(git show box:made)" = work'
	see litterbox merge box
	check "its work is merged" 'test "$(cat made)" = work'
	see litterbox redteam "$@"
	check "every attack is closed" 'test $code = 0 && has " 0 open"'
}

if [ "$1" = moved ]; then
	who=root
	common $(cat /redteam)
	who="an ordinary user"
	install -d -o 1000 -g 1000 /home/ordinary
	export -f common check see has
	setpriv --reuid 1000 --regid 1000 --clear-groups env HOME=/home/ordinary who="$who" bash -c 'common "$@"' common $(cat /redteam)
	echo "the story is over"
	sync
	echo o >/proc/sysrq-trigger
	sleep 60
fi
