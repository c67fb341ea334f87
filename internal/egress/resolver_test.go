package egress_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

func newNames(t testing.TB, file string) *egress.Names {
	t.Helper()
	names, err := egress.NewNames(file)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func query(t testing.TB, name string, kind dnsmessage.Type, change func(*dnsmessage.Message)) []byte {
	t.Helper()
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 77, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}},
	}
	if change != nil {
		change(&m)
	}
	data, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// answer returns a reply in short: the code and the answer.
func answer(t testing.TB, reply []byte) string {
	t.Helper()
	if reply == nil {
		return "nothing"
	}
	var m dnsmessage.Message
	if err := m.Unpack(reply); err != nil {
		t.Fatal(err)
	}
	if !m.Response || m.ID != 77 {
		t.Errorf("the header was %v", m.Header.GoString())
	}
	parts := []string{strings.TrimPrefix(m.RCode.String(), "RCode")}
	for _, r := range m.Answers {
		switch body := r.Body.(type) {
		case *dnsmessage.AResource:
			parts = append(parts, netip.AddrFrom4(body.A).String())
		case *dnsmessage.AAAAResource:
			parts = append(parts, netip.AddrFrom16(body.AAAA).String())
		case *dnsmessage.PTRResource:
			parts = append(parts, body.PTR.String())
		}
		if r.Header.Name != m.Questions[0].Name || r.Header.TTL > 60 {
			t.Errorf("the record was %v", r.Header.GoString())
		}
	}
	return strings.Join(parts, " ")
}

func TestResolver(t *testing.T) {
	seen := egress.NewObservations(0)
	p := policy(t, "a.example; *.b.example:22; 10.1.2.3", "no.b.example")
	r := &egress.Resolver{Policy: func() *egress.Policy { return p }, Names: newNames(t, ""), Observe: seen.Add}
	long := strings.Repeat(strings.Repeat("x", 49)+".", 4) + strings.Repeat("y", 43) + ".b.example."
	if len(long) != 254 {
		t.Fatal(len(long))
	}
	for _, c := range []struct {
		name string
		kind dnsmessage.Type
		want string
	}{
		{"a.example.", dnsmessage.TypeA, "Success 198.18.1.0"},
		{"a.example.", dnsmessage.TypeAAAA, "Success fd6c:6974:7465:7262::100"},
		{"A.eXaMpLe.", dnsmessage.TypeA, "Success 198.18.1.0"},
		{"x.b.example.", dnsmessage.TypeAAAA, "Success fd6c:6974:7465:7262::101"},
		{long, dnsmessage.TypeA, "Success 198.18.1.2"},
		{"a.example.", dnsmessage.TypeHTTPS, "Success"},
		{"_http._tcp.a.example.", dnsmessage.TypeSRV, "Success"},
		{"a.example.", dnsmessage.TypeSVCB, "Success"},
		{"a.example.", dnsmessage.TypeTXT, "Success"},
		{"a.example.", dnsmessage.TypeMX, "Success"},
		{"a.example.", dnsmessage.TypeALL, "Success"},
		{"b.example.", dnsmessage.TypeA, "NameError"},
		{"no.b.example.", dnsmessage.TypeA, "NameError"},
		{"no.b.example.", dnsmessage.TypeTXT, "NameError"},
		{"other.example.", dnsmessage.TypeA, "NameError"},
		{"10.1.2.3.", dnsmessage.TypeA, "NameError"},
		{".", dnsmessage.TypeNS, "NameError"},
		{"a\x00.b.example.", dnsmessage.TypeA, "NameError"},
		{"a b.b.example.", dnsmessage.TypeA, "NameError"},
		{"localhost.", dnsmessage.TypeA, "Success 127.0.0.1"},
		{"x.localhost.", dnsmessage.TypeAAAA, "Success ::1"},
		{"0.1.18.198.in-addr.arpa.", dnsmessage.TypePTR, "Success a.example."},
		{"1.0.1.0.0.0.0.0.0.0.0.0.0.0.0.0.2.6.2.7.5.6.4.7.4.7.9.6.c.6.D.F.IP6.ARPA.", dnsmessage.TypePTR, "Success x.b.example."},
		{"9.9.18.198.in-addr.arpa.", dnsmessage.TypePTR, "NameError"},
		{"8.8.8.8.in-addr.arpa.", dnsmessage.TypePTR, "NameError"},
		{"8.8.8.in-addr.arpa.", dnsmessage.TypePTR, "NameError"},
	} {
		for _, tcp := range []bool{false, true} {
			if got := answer(t, r.Answer(query(t, c.name, c.kind, nil), tcp)); got != c.want {
				t.Errorf("%s %s: %s, want %s", c.name, c.kind, got, c.want)
			}
		}
	}
	denied := map[string]int64{}
	for _, o := range seen.Snapshot() {
		denied[o.Host] = o.Count
	}
	want := map[string]int64{"b.example": 2, "no.b.example": 4, "other.example": 2, "10.1.2.3.": 2, ".": 2, "a\uFFFD.b.example.": 2, "a b.b.example.": 2, "198.18.9.9": 2, "8.8.8.8": 2, "8.8.8.in-addr.arpa": 2}
	if diff := cmp.Diff(want, denied); diff != "" {
		t.Errorf("denied look-ups (-want +got):\n%s", diff)
	}
}

func TestResolverMessages(t *testing.T) {
	p := policy(t, "a.example", "")
	r := &egress.Resolver{Policy: func() *egress.Policy { return p }, Names: newNames(t, "")}
	for name, c := range map[string]struct {
		change func(*dnsmessage.Message)
		want   string
	}{
		"an answer":     {func(m *dnsmessage.Message) { m.Response = true }, "nothing"},
		"an update":     {func(m *dnsmessage.Message) { m.OpCode = 5 }, "NotImplemented"},
		"two questions": {func(m *dnsmessage.Message) { m.Questions = append(m.Questions, m.Questions[0]) }, "FormatError"},
		"no question":   {func(m *dnsmessage.Message) { m.Questions = nil }, "FormatError"},
		"another class": {func(m *dnsmessage.Message) { m.Questions[0].Class = dnsmessage.ClassCHAOS }, "Refused"},
		"with EDNS": {func(m *dnsmessage.Message) {
			var h dnsmessage.ResourceHeader
			_ = h.SetEDNS0(4096, 0, true)
			m.Additionals = []dnsmessage.Resource{{Header: h, Body: &dnsmessage.OPTResource{}}}
		}, "Success 198.18.1.0"},
	} {
		reply := r.Answer(query(t, "a.example.", dnsmessage.TypeA, c.change), false)
		if got := answer(t, reply); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		var m dnsmessage.Message
		if name == "with EDNS" && (m.Unpack(reply) != nil || len(m.Additionals) != 1) {
			t.Errorf("%s: answered without", name)
		}
	}
	short := query(t, "a.example.", dnsmessage.TypeA, nil)
	if got := answer(t, r.Answer(short[:len(short)-3], false)); got != "FormatError" {
		t.Errorf("a torn question: %s", got)
	}
	if reply := r.Answer(make([]byte, 5000), false); reply != nil {
		t.Errorf("a huge packet was answered")
	}
	mixed := query(t, "a.ExAmPlE.", dnsmessage.TypeA, nil)
	if reply := r.Answer(mixed, false); !strings.Contains(string(reply), "ExAmPlE") {
		t.Errorf("the case was not given back: %q", reply)
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(query(f, "a.example.", dnsmessage.TypeA, nil), false)
	f.Add(query(f, "x.b.example.", dnsmessage.TypeHTTPS, nil), true)
	f.Add([]byte("\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\xc0\x0c\x00\x01\x00\x01"), false)
	p := policy(f, "a.example; *.b.example", "")
	names := newNames(f, "")
	r := &egress.Resolver{Policy: func() *egress.Policy { return p }, Names: names}
	f.Fuzz(func(t *testing.T, msg []byte, tcp bool) {
		reply := r.Answer(msg, tcp)
		if reply == nil {
			return
		}
		var m dnsmessage.Message
		if err := m.Unpack(reply); err != nil || len(reply) > 1232 || !m.Response {
			t.Fatalf("%q was answered with %q (%v)", msg, reply, err)
		}
		for _, one := range m.Answers {
			if a, ok := one.Body.(*dnsmessage.AResource); ok {
				name, known := names.Host(netip.AddrFrom4(a.A))
				if local := netip.AddrFrom4(a.A).IsLoopback(); !local && (!known || !p.DecideName(name).Allowed) {
					t.Fatalf("%q got the address of %q", msg, name)
				}
			}
		}
	})
}

func TestNamesSurvive(t *testing.T) {
	file := filepath.Join(t.TempDir(), "names")
	names := newNames(t, file)
	first, first6, err := names.Of("A.example.")
	if err != nil {
		t.Fatal(err)
	}
	second, _, err := names.Of("b.example")
	if err != nil || first == second {
		t.Fatalf("both got %s, %v", first, err)
	}
	if err := names.Close(); err != nil {
		t.Fatal(err)
	}
	// A crash tore the third, and an edit spoilt a line.
	data, err := os.ReadFile(file)
	if err != nil || string(data) != "a.example\nb.example\n" {
		t.Fatalf("the file holds %q, %v", data, err)
	}
	if err := os.WriteFile(file, []byte("a.example\nB AD\nb.example\nthi"), 0o600); err != nil {
		t.Fatal(err)
	}
	names = newNames(t, file)
	again, again6, err := names.Of("a.example")
	if err != nil || again != first || again6 != first6 {
		t.Errorf("after a restart the name has %s and %s, %v", again, again6, err)
	}
	if host, ok := names.Host(first6); host != "a.example" || !ok {
		t.Errorf("%s stands for %q", first6, host)
	}
	if host, ok := names.Host(second); ok {
		t.Errorf("the spoilt line stands for %q", host)
	}
	third, _, err := names.Of("c.example")
	if err != nil {
		t.Fatal(err)
	}
	if err := names.Close(); err != nil {
		t.Fatal(err)
	}
	names = newNames(t, file)
	if host, _ := names.Host(third); host != "c.example" {
		t.Errorf("%s stands for %q", third, host)
	}
	if err := names.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestNamesAreBounded(t *testing.T) {
	names := newNames(t, filepath.Join(t.TempDir(), "names"))
	defer names.Close()
	addrs := map[netip.Addr]string{}
	var refused error
	given := 0
	for i := range 10_000 {
		name := "n" + strconv.Itoa(i) + ".example"
		v4, v6, err := names.Of(name)
		if err != nil {
			refused = err
			break
		}
		given++
		for _, addr := range []netip.Addr{v4, v6} {
			if other, twice := addrs[addr]; twice || !names.Contains(addr) {
				t.Fatalf("%s stands for %s and %s", addr, name, other)
			}
			addrs[addr] = name
			if host, ok := names.Host(addr); !ok || host != name {
				t.Fatalf("%s stands for %q, want %q", addr, host, name)
			}
		}
	}
	if fault.KindOf(refused) != fault.Unavailable || given < 1000 {
		t.Errorf("after %d names: %v", given, refused)
	}
	if _, _, err := names.Of("n7.example"); err != nil {
		t.Errorf("a known name: %v", err)
	}
	for _, other := range []string{"198.18.0.1", "198.19.255.255", "fd6c:6974:7465:7262:1::100", "8.8.8.8"} {
		if host, ok := names.Host(netip.MustParseAddr(other)); ok {
			t.Errorf("%s stands for %q", other, host)
		}
	}
	if _, _, err := names.Of("10.1.2.3"); fault.KindOf(err) != fault.Invalid {
		t.Errorf("an address as a name: %v", err)
	}
}

func TestNamesConcurrently(t *testing.T) {
	names := newNames(t, "")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 100 {
				name := "n" + strconv.Itoa(i) + ".example"
				v4, _, err := names.Of(name)
				if host, _ := names.Host(v4); err != nil || host != name {
					t.Errorf("%s stands for %q, %v", v4, host, err)
				}
			}
		})
	}
	all.Wait()
}
