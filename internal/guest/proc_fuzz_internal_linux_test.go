package guest

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/guest/egress"
)

// FuzzProc puts anything into the files of /proc that the guest reads, and
// gives a process any name.
func FuzzProc(f *testing.F) {
	f.Add("cat", "31933 (cat) R 31046 31046 11150 0 -1 4194304 99 0 0 0 0 0 0 0 20 0 1 0 2450085 3133440 362 18446744073709551615 94367156047872\n")
	f.Add("a) X 1 1 1 0 -1 4 (b", "1 (x) S 1")
	f.Add("\n", "765 406 378 5 0 123 0\n")
	f.Add(")", "Limit                     Soft Limit           Hard Limit           Units     \n"+
		"Max file locks            4611686018427387905  unlimited            locks     \n")
	f.Add("", "Max file locks")
	f.Add("(", "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"+
		"   0: 0100007F:54B4 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 34427155 2 00000000c9f0ff1b 100 0 0 10 0\n")
	f.Fuzz(func(t *testing.T, name, content string) {
		line := fmt.Sprintf("7 (%s) S 5 6 8 0 -1 4194304 99 0 0 0 0 0 0 0 20 0 1 0 2450085 3133440 362 18446744073709551615\n", name)
		p, ok := parseStat(line)
		if want := "[" + name + "]"; !ok || p.Command != want || p.Parent != 5 || p.Group != 6 || p.session != 8 || p.ticks != 2450085 || p.over {
			t.Errorf("%q is %+v, %v", line, p, ok)
		}
		if p, ok := parseStat(content); ok && (p.Command == "" || p.zombie && !p.over) {
			t.Errorf("%q is %+v", content, p)
		}
		secondNumber([]byte(content))
		if mark := markIn([]byte(content)); mark != 0 && !strings.Contains(content, strconv.FormatUint(mark, 10)) {
			t.Errorf("%q has the mark %d", content, mark)
		}
		if inode := egress.InodeOf(strings.NewReader(content), ":54B4"); inode != "" && !strings.Contains(content, ":54B4") {
			t.Errorf("%q has the socket %q", content, inode)
		}
	})
}

// FuzzKernelMessages reads the kernel's possible answers about a socket and
// data about a datagram: none, or a socket, or an address.
func FuzzKernelMessages(f *testing.F) {
	for _, text := range []string{
		// A socket that is connected, and one that is not there (sock_diag(7)).
		"7c0000001400000007000000b47c000002010200e53e9dd37f0000010000000000000000000000007f00000100000000000000000000000000000000ddd10000" +
			"00000000983a0000000000000000000000000000af520f02050008000000000008000f00000000000c00150001000000000000000600160052000000",
		"5c0000000200000007000000b47c0000feffffff4800000014000100070000000000000002060000ffffffffe53e00017f000001000000000000000000000000" +
			"7f00000100000000000000000000000000000000ffffffffffffffff",
		// Addresses of both families (ip(7), IP_RECVORIGDSTADDR), whole, cut short and of no length.
		"200000000000000000000000140000000200e2c17f0000010000000000000000",
		"2c00000000000000290000004a0000000a00b66c00000000000000000000000000000000000000010000000000000000",
		"160000000000000000000000140000000200e2c17f00",
		"000000000000000000000000140000000200e2c17f0000010000000000000000",
		"ffffffffffffffff00000000140000000200e2c17f0000010000000000000000",
	} {
		seed, err := hex.DecodeString(text)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		if inode := egress.DiagAnswer(message); inode != "" {
			if n, err := strconv.ParseUint(inode, 10, 32); err != nil || n == 0 {
				t.Errorf("%x is about the socket %q", message, inode)
			}
		}
		if address, ok := egress.SentTo(message); ok != address.IsValid() {
			t.Errorf("%x was sent to %v, %v", message, address, ok)
		}
	})
}
