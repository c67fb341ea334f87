package cgroup

import (
	"strings"
	"testing"
)

// FuzzHierarchies puts anything into /proc/self/mountinfo and
// /proc/self/cgroup: groups are always made in a mounted hierarchy.
func FuzzHierarchies(f *testing.F) {
	const one = "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n" +
		"34 31 0:32 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n" +
		"36 31 0:34 /docker/0a1b /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" +
		"42 31 0:40 / /sys/fs/cgroup/systemd rw - cgroup systemd rw,xattr,name=systemd\n"
	f.Add(one, "9:name=systemd:/\n8:memory:/docker/0a1b\n7:cpu,cpuacct:/user.slice\n0::/\n")
	f.Add(one, "8:memory:/docker/0a1b/../..\n7:cpu,cpuacct:/../other (deleted)\n")
	f.Add("30 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n",
		"0::/user.slice/user-1000.slice/user@1000.service/app.slice/a\\x20b.scope\n")
	f.Add("30 23 0:26 /.. /mnt/with\\040blank\\134 rw - cgroup2 cgroup2 rw\n", "0::/../../x:y\n")
	f.Add("30 23 0:26 / - cgroup2 cgroup2 rw\n1 2 3 / /m - cgroup x \n - cgroup2", "::\n:\n0::")
	f.Fuzz(func(t *testing.T, mountinfo, groups string) {
		own := parseGroups(groups)
		for _, m := range parseMounts(mountinfo) {
			if m.version != 1 && m.version != 2 {
				t.Errorf("%q: %+v", mountinfo, m)
			}
			at := m.parent(own[strings.Join(m.controllers, ",")])
			if !strings.HasPrefix(m.point, "/") || strings.Contains(m.point+"/", "/../") || strings.Contains(m.point+"/", "/./") || strings.Contains(m.point, "//") {
				continue // the kernel does not say so
			}
			if point := strings.TrimSuffix(m.point, "/"); at != "" && at != m.point && !strings.HasPrefix(at+"/", point+"/") {
				t.Errorf("%q, %q: %q is not below %q", mountinfo, groups, at, m.point)
			}
		}
	})
}

// FuzzUsage puts anything into the files of a group's counters.
func FuzzUsage(f *testing.F) {
	f.Add("usage_usec 31337\nuser_usec 3\nnr_periods 0\n", "usage_usec")
	f.Add("total_inactive_file 4096\ninactive_file 1\n", "inactive_file")
	f.Add("8:0 Read 4096\n8:0 Write 12\n8:0 Total 4108\nTotal 4108\n", "Total")
	f.Add("8:0 rbytes=90112 wbytes=0 rios=3 wios=0 dbytes=0 dios=0\n259:0 \n", "max")
	f.Add("oom_kill_disable 0\nunder_oom 0\noom_kill -7\n", "oom_kill")
	f.Add("max max\nRead Read -9223372036854775808\nrbytes=-2 wbytes=x", "max")
	f.Fuzz(func(t *testing.T, text, name string) {
		if n := field(text, name); n < -1 {
			t.Errorf("%q: %s is %d", text, name, n)
		}
		if in, out := transferred(text); len(text) < 40 && (in < 0 || out < 0) { // two numbers at most: no overflow
			t.Errorf("%q: %d read, %d written", text, in, out)
		}
	})
}
