package egress

import (
	"bytes"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"sync"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// maxNames bounds how many names a sandbox may have answered. Below an allowed
// wildcard it can invent names without end.
const maxNames = 8192

// firstName keeps the first addresses of the range free for the sandbox's interface.
const firstName = 256

// Names keeps an address of our own per family for every name that was answered,
// so that a later connection names its host exactly, whatever its protocol. An
// address is never given to a second name while the sandbox lives, even across
// restarts of the process that holds Names. It is safe for concurrent use.
type Names struct {
	mu     sync.RWMutex
	file   *os.File // nil: in memory only
	list   []string // the n-th name has the n-th address
	number map[string]int
}

// ranges are the reserved addresses: 198.18.0.0/15 is for benchmarks and never
// on the internet (RFC 2544), the other is a unique local prefix (RFC 4193).
func ranges() (v4, v6 netip.Prefix) {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 18}), 15),
		netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, 0x6c, 0x69, 0x74, 0x74, 0x65, 0x72, 0x62}), 64)
}

// NewNames reads file, which holds one name per line in the order of their
// addresses, and appends to it from then on. A last line torn by a crash is
// removed: it was never answered. An empty file name keeps names in memory.
func NewNames(file string) (*Names, error) {
	n := &Names{number: map[string]int{}}
	if file == "" {
		return n, nil
	}
	data, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot read the names of the sandbox")
	}
	whole := data[:bytes.LastIndexByte(data, '\n')+1]
	for line := range bytes.Lines(whole) {
		name := string(bytes.TrimSuffix(line, []byte{'\n'}))
		// A line that is not a name keeps its place, or all lines after it would move.
		if canonical, cause := canonicalHost(name); cause != "" || canonical != name {
			name = ""
		}
		if _, twice := n.number[name]; name != "" && !twice {
			n.number[name] = len(n.list)
		}
		n.list = append(n.list, name)
	}
	if n.file, err = os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err == nil && len(whole) != len(data) {
		if err = n.file.Truncate(int64(len(whole))); err != nil {
			err = errors.Join(err, n.file.Close())
		}
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot open the names of the sandbox")
	}
	return n, nil
}

// Of gives the addresses that stand for host, and picks them on first use. It
// fails with fault.Invalid if host is not a name, and with fault.Unavailable
// when there are too many names or the file cannot be written.
func (n *Names) Of(host string) (v4, v6 netip.Addr, err error) {
	name, err := CanonicalHost(host)
	if err != nil {
		return v4, v6, err
	}
	n.mu.RLock()
	number, ok := n.number[name]
	n.mu.RUnlock()
	if !ok {
		if number, err = n.add(name); err != nil {
			return v4, v6, err
		}
	}
	v4, v6 = address(number)
	return v4, v6, nil
}

func (n *Names) add(name string) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if number, ok := n.number[name]; ok {
		return number, nil
	}
	if len(n.list) >= maxNames {
		return 0, fault.New(fault.Unavailable, "cannot give %q an address: the sandbox already uses %d names", name, maxNames).
			WithHint("name hosts in the allow-list instead of a wildcard, or use a new sandbox")
	}
	if n.file != nil {
		// Written before it is answered, so that every name that a program
		// knows is in the file. One write(2): a torn line has no newline.
		if wrote, err := n.file.WriteString(name + "\n"); err != nil {
			if wrote > 0 {
				err = errors.Join(err, n.takeBack(int64(wrote)))
			}
			return 0, fault.Wrap(fault.Unavailable, err, "cannot record the name %q", name)
		}
	}
	number := len(n.list)
	n.list = append(n.list, name)
	n.number[name] = number
	return number, nil
}

// takeBack removes the beginning of a line that did not fit on the disk.
func (n *Names) takeBack(wrote int64) error {
	info, err := n.file.Stat()
	if err != nil {
		return err
	}
	return n.file.Truncate(info.Size() - wrote)
}

// Contains reports whether addr is one of those reserved for names.
func (n *Names) Contains(addr netip.Addr) bool { return reserved(addr) }

func reserved(addr netip.Addr) bool {
	v4, v6 := ranges()
	addr = addr.Unmap()
	return v4.Contains(addr) || v6.Contains(addr)
}

// Host gives the name that addr stands for.
func (n *Names) Host(addr netip.Addr) (string, bool) {
	number, ok := numberOf(addr.Unmap())
	if !ok {
		return "", false
	}
	n.mu.RLock()
	defer n.mu.RUnlock()
	if number >= len(n.list) || n.list[number] == "" {
		return "", false
	}
	return n.list[number], true
}

// Close gives the file back. Names still answers what it knows.
func (n *Names) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.file == nil {
		return nil
	}
	return n.file.Close()
}

// address is the pair of addresses of the n-th name.
func address(number int) (v4, v6 netip.Addr) {
	base4, base6 := ranges()
	offset := uint32(number + firstName)
	a4, a6 := base4.Addr().As4(), base6.Addr().As16()
	a4[1] += byte(offset >> 16)
	for i := range 3 {
		part := byte(offset >> (8 * i))
		a6[15-i] = part
		if i < 2 {
			a4[3-i] = part
		}
	}
	return netip.AddrFrom4(a4), netip.AddrFrom16(a6)
}

// numberOf is the inverse of address.
func numberOf(addr netip.Addr) (int, bool) {
	base4, base6 := ranges()
	var offset int
	switch {
	case base4.Contains(addr):
		a := addr.As4()
		offset = int(a[1]-18)<<16 | int(a[2])<<8 | int(a[3])
	case base6.Contains(addr):
		a := addr.As16()
		if [5]byte(a[8:13]) != [5]byte{} {
			return 0, false
		}
		offset = int(a[13])<<16 | int(a[14])<<8 | int(a[15])
	default:
		return 0, false
	}
	return offset - firstName, offset >= firstName
}
