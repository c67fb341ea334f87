package ownership

import (
	"os"
	"slices"
	"strconv"
	"strings"
)

// alone reports whether a group has no member but the effective user, like the
// group of the same name that many systems give each user: their umask is 002,
// and their files are writable by that group. Group 0 is root's. A group that
// the machine's files do not know may have others.
func alone(gid int) bool {
	if gid == 0 {
		return true
	}
	groups, err := os.ReadFile("/etc/group")
	if err != nil {
		return false
	}
	users, err := os.ReadFile("/etc/passwd")
	if err != nil {
		return false
	}
	return holdsOnly(string(groups), string(users), gid, os.Geteuid())
}

// holdsOnly reads group(5) and passwd(5).
func holdsOnly(groups, users string, gid, uid int) bool {
	id := strconv.Itoa(gid)
	name := ""
	for line := range strings.Lines(users) {
		field := strings.Split(strings.TrimSpace(line), ":")
		if len(field) < 4 {
			continue
		}
		if field[2] == strconv.Itoa(uid) {
			name = field[0]
		} else if field[3] == id {
			return false
		}
	}
	known := false
	for line := range strings.Lines(groups) {
		field := strings.Split(strings.TrimSpace(line), ":")
		if len(field) < 4 || field[2] != id {
			continue
		}
		known = true
		members := strings.FieldsFunc(field[3], func(r rune) bool { return r == ',' })
		if name == "" || slices.ContainsFunc(members, func(member string) bool { return member != name }) {
			return false
		}
	}
	return known
}

// unmapped reports whether an id stands for users that this user namespace does
// not know: the root directory of a namespace made without root has such an owner.
func unmapped(uid int) bool {
	overflow, err := os.ReadFile("/proc/sys/kernel/overflowuid")
	if err != nil || strings.TrimSpace(string(overflow)) != strconv.Itoa(uid) {
		return false
	}
	mapped, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(mapped)) {
		field := strings.Fields(line)
		if len(field) != 3 {
			return false
		}
		first, err := strconv.Atoi(field[0])
		count, err2 := strconv.Atoi(field[2])
		if err != nil || err2 != nil || uid >= first && uid < first+count {
			return false
		}
	}
	return true
}
