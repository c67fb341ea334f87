package ownership

import "testing"

func TestHoldsOnly(t *testing.T) {
	const users = "root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\nbob:x:1001:50::/:/bin/sh\neve:x:1002:1002::/:/bin/sh\n"
	const groups = "root:x:0:\nstaff:x:50:\nann:x:1000:\nmixed:x:60:ann,bob\nmine:x:61:ann\neve:x:1002:ann\nbroken\n"
	for gid, want := range map[int]bool{
		1000: true, // ann's own
		61:   true,
		50:   false, // bob's primary group
		60:   false,
		1002: false, // eve is in it by her own entry
		4711: false, // unknown
	} {
		if got := holdsOnly(groups, users, gid, 1000); got != want {
			t.Errorf("group %d: %t", gid, got)
		}
	}
	if holdsOnly(groups, users, 61, 4711) {
		t.Error("a user without an entry is alone in a group of others")
	}
}
