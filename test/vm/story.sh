# What is tried on the machine, first by root, then by an ordinary user in a
# plain login session, then by that user in a scope that systemd delegates. Each
# check prints "ok: " or "not ok: "; what stands above says what was seen.
export PAGER=cat HOME=${HOME:-/root}

check() { # what holds, then a command that tells
	if eval "$2"; then echo "ok: $who: $1"; else echo "not ok: $who: $1 ($2)"; fi
}
has() { echo "$seen" | grep -q -- "$1"; }
see() {
	seen=$("$@" 2>&1)
	code=$?
	echo "+ $*"
	echo "$seen"
}
# eventually waits for what the keeper does when it next looks.
eventually() {
	for _ in $(seq 180); do
		eval "$1" && return
		sleep 1
	done
	return 1
}
group() { find /sys/fs/cgroup -type d -name "litterbox-$box-*" | head -n 1; }

common() {
	git config --global user.name one
	git config --global user.email one@example.org
	mkdir -p ~/"$box" && cd ~/"$box" && git init -q . && echo 1 >file && git add file && git commit -qm one
	see litterbox doctor
	check "the isolation is full" 'has "^isolation: full"'
	see litterbox create "$box"
	check "a sandbox can be made" 'test $code = 0'
	see litterbox exec "$box" -- sh -c 'echo work >made; cat /proc/self/cgroup'
	check "nothing of the host's control groups shows" 'test "$seen" = 0::/'
	check "its work is on the branch" 'test "$(git show "$box:made")" = work'
}

# grouped are the promises of control groups.
grouped() {
	check "doctor says who keeps what" 'litterbox doctor | grep -q "memory: control group, pids: control group"'
	see litterbox limits "$box" memory=128MiB pids=100
	check "memory and pids are kept by the group" 'test $code = 0 && test "$(litterbox limits "$box" | grep -c "cgroup v2")" -ge 2'
	check "the kernel has the limits" 'test "$(cat $(group)/memory.max) $(cat $(group)/pids.max)" = "134217728 100"'
	see litterbox exec "$box" --no-commit -- sh -c 'head -c 400M /dev/zero | tail -c 399M | wc -c'
	check "what takes too much memory ends" '! has "^418381824"'
	check "and that is an event" 'eventually "litterbox events | grep -q limit.*memory"'
	see litterbox exec "$box" --no-commit -- sh -c 'for i in $(seq 300); do sleep 20 & done; echo all of them'
	check "a storm of forks is held" '! has "^all of them" || has "fork"'
	see litterbox pause "$box"
	check "a pause freezes the group" 'grep -q "frozen 1" $(group)/cgroup.events'
	see litterbox resume "$box"
	check "and a resume thaws it" 'grep -q "frozen 0" $(group)/cgroup.events'
}

# rearranged shows that limits come back which systemd takes away.
rearranged() {
	litterbox exec "$box" --no-commit -- sleep 600 >/dev/null 2>&1 &
	see litterbox limits "$box" cpus=0.5
	check "the kernel limits cpus" 'test "$(cat $(group)/cpu.max)" = "50000 100000"'
	"$@" daemon-reload
	sleep 3
	see cat "$(group)/cgroup.controllers"
	check "cpus are limited after a daemon-reload" 'eventually "test \"\$(cat $(group)/cpu.max)\" = \"50000 100000\""'
	echo "-cpu" >"$(dirname "$(group)")/cgroup.subtree_control"
	check "cpus are limited after the controller was taken away" 'eventually "test \"\$(cat $(group)/cpu.max)\" = \"50000 100000\""'
	kill $!
}

case ${1:-} in
plain)
	who="login session" box=plain
	common
	see litterbox limits plain
	check "nobody delegates to it, and that is said" 'has "memory .* keeper" && has "pids .* rlimit" && litterbox doctor | grep -q "systemd-run --user --scope"'
	litterbox delete --force plain
	;;
scope)
	who="scope" box=scope
	common
	grouped
	rearranged systemctl --user
	litterbox delete --force scope
	check "nothing is left of its group" 'test -z "$(group)"'
	;;
*)
	uname -r
	who=root box=box
	common
	grouped
	rearranged systemctl
	litterbox delete --force box
	check "nothing is left of its group" 'test -z "$(group)"'
	su -l ordinary -c 'bash /story.sh plain'
	systemd-run --wait --pipe --quiet -p PAMName=login -p User=ordinary bash -c \
		'export HOME=/home/ordinary XDG_RUNTIME_DIR=/run/user/$(id -u); systemd-run --user --scope --quiet bash /story.sh scope'
	echo "the story is over"
	;;
esac
