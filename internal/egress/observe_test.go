package egress_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
)

func denied(host string, port uint16, protocol string) egress.Observation {
	return egress.Observation{Host: host, Port: port, Protocol: protocol, Verdict: egress.Denied, Why: "no rule", Count: 1}
}

var untimed = cmpopts.IgnoreFields(egress.Observation{}, "First", "Last")

func TestObservations(t *testing.T) {
	table := egress.NewObservations(0)
	sub, stop := table.Subscribe(8)
	first := denied("evil\x1b[2J\n.example", 443, egress.HTTPS)
	first.Process = "curl"
	table.Add(first)
	second := first
	second.Why, second.BytesIn, second.BytesOut, second.Count = "again", 5, 7, 1
	second.Addr = netip.MustParseAddr("::ffff:93.184.215.14")
	table.Add(second)
	other := denied("", 22, egress.TCP)
	other.Addr = netip.MustParseAddr("fe80::1%eth0")
	table.Add(other)
	want := []egress.Observation{
		{Host: "evil\uFFFD[2J\uFFFD.example", Addr: netip.MustParseAddr("93.184.215.14"), Port: 443, Protocol: "https", Process: "curl", Verdict: "denied", Why: "again", BytesIn: 5, BytesOut: 7, Count: 2},
		{Addr: netip.MustParseAddr("fe80::1"), Port: 22, Protocol: "tcp", Verdict: "denied", Why: "no rule", Count: 1},
	}
	compare := cmp.Options{untimed, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })}
	if diff := cmp.Diff(want, table.Snapshot(), compare); diff != "" {
		t.Errorf("the table (-want +got):\n%s", diff)
	}
	var followed []int64
	for range 3 {
		followed = append(followed, (<-sub).Count)
	}
	if diff := cmp.Diff([]int64{1, 2, 1}, followed); diff != "" {
		t.Errorf("counts as they came (-want +got):\n%s", diff)
	}
	stop()
	stop() // twice is safe
	if _, open := <-sub; open {
		t.Error("the subscription went on")
	}
	table.Add(other) // and no one listens

	file := filepath.Join(t.TempDir(), "observed.jsonl")
	if err := table.Save(file); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil || strings.Count(string(data), "\n") != 2 {
		t.Fatalf("the file holds %q, %v", data, err)
	}
	if err := os.WriteFile(file, append(data, "{torn"...), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded := egress.NewObservations(0)
	if err := loaded.Load(file); err != nil {
		t.Fatal(err)
	}
	same := cmp.Options{cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmpopts.EquateApproxTime(0)}
	if diff := cmp.Diff(table.Snapshot(), loaded.Snapshot(), same); diff != "" {
		t.Errorf("after loading (-want +got):\n%s", diff)
	}
	if all, err := egress.ReadObservations(file + ".none"); all != nil || err != nil {
		t.Errorf("no file gave %v, %v", all, err)
	}
}

func TestObservationsAreBounded(t *testing.T) {
	table := egress.NewObservations(64)
	allowed := egress.Observation{Host: "a.example", Port: 443, Protocol: "https", Verdict: egress.Allowed, Count: 1, Last: time.Unix(1, 0)}
	table.Add(allowed)
	_, stop := table.Subscribe(1) // a reader that never reads delays no one
	defer stop()
	for i := range 10_000 {
		table.Add(denied("n"+strconv.Itoa(i)+".example", 0, egress.DNS))
	}
	rows := table.Snapshot()
	if len(rows) > 64 || rows[0].Host != "a.example" || table.Lost() != 10_001-int64(len(rows)) {
		t.Errorf("%d rows, the first %+v, %d lost", len(rows), rows[0], table.Lost())
	}
}

func TestSuggest(t *testing.T) {
	p := policy(t, "known.example; tcp://x.example:1; GET http://limited.example; named.example", "telemetry.example")
	private := denied("named.example", 443, egress.HTTPS)
	private.Addr = netip.MustParseAddr("10.0.0.7")
	metadata := denied("", 80, egress.TCP)
	metadata.Addr = netip.MustParseAddr("169.254.169.254")
	public := denied("", 5432, egress.TCP)
	public.Addr = netip.MustParseAddr("2606:2800:21f::1")
	allowed := denied("allowed.example", 443, egress.HTTPS)
	allowed.Verdict = egress.Allowed
	seen := []egress.Observation{
		denied("one.example", 0, egress.DNS), denied("one.example", 443, egress.HTTPS),
		denied("git.example", 22, egress.TCP),
		denied("a.cdn.example", 0, egress.DNS), denied("b.cdn.example", 0, egress.DNS), denied("c.cdn.example", 0, egress.DNS), denied("x.y.cdn.example", 0, egress.DNS),
		denied("a.two.example", 0, egress.DNS), denied("b.two.example", 0, egress.DNS),
		denied("a.github.io", 0, egress.DNS), denied("b.github.io", 0, egress.DNS), denied("c.github.io", 0, egress.DNS),
		denied("telemetry.example", 0, egress.DNS),
		denied("known.example", 443, egress.HTTPS), // its server name was another
		denied("known.example", 80, egress.TCP),    // it was no HTTP
		denied("limited.example", 80, egress.HTTP),
		denied("8.8.8.8", 0, egress.DNS), denied("bad name", 0, egress.DNS),
		private, metadata, public, allowed,
	}
	want := []egress.Suggestion{
		{Rule: "*.cdn.example", Why: "3 names below cdn.example were denied", Covers: []string{"a.cdn.example", "b.cdn.example", "c.cdn.example", "x.y.cdn.example"}, Warning: "it also allows every other name below cdn.example"},
		{Rule: "10.0.0.7:443", Why: "was denied", Covers: []string{"named.example:443"}, Warning: "the address is a private network"},
		{Rule: "[2606:2800:21f::1]:5432", Why: "was denied", Covers: []string{"[2606:2800:21f::1]:5432"}},
		{Rule: "a.github.io", Why: "was denied", Covers: []string{"a.github.io"}},
		{Rule: "a.two.example", Why: "was denied", Covers: []string{"a.two.example"}},
		{Rule: "b.github.io", Why: "was denied", Covers: []string{"b.github.io"}},
		{Rule: "b.two.example", Why: "was denied", Covers: []string{"b.two.example"}},
		{Rule: "c.github.io", Why: "was denied", Covers: []string{"c.github.io"}},
		{Rule: "git.example:22", Why: "was denied", Covers: []string{"git.example:22"}},
		{Rule: "one.example", Why: "was denied", Covers: []string{"one.example", "one.example:443"}},
		{Rule: "tcp://known.example:80", Why: "was denied", Covers: []string{"known.example:80"}, Warning: "what it carries is not inspected"},
	}
	if diff := cmp.Diff(want, egress.Suggest(p, seen, func(domain string) bool { return domain == "github.io" })); diff != "" {
		t.Errorf("suggested (-want +got):\n%s", diff)
	}
}

func TestExplain(t *testing.T) {
	p := policy(t, "a.example; *.b.example:22; GET https://c.example/x; 10.1.2.3", "no.b.example")
	type brief struct {
		Allowed, Resolves, Inspect bool
		Rule, Hint                 string
	}
	for _, c := range []struct {
		destination string
		want        brief
	}{
		{"a.example", brief{true, true, true, "a.example", ""}},
		{"A.example.:25", brief{false, true, false, "a.example", "a.example:25"}},
		{"x.b.example:22", brief{true, true, false, "*.b.example:22", ""}},
		{"no.b.example:22", brief{false, false, false, "no.b.example", ""}},
		{"c.example", brief{true, true, true, "GET https://c.example/x", ""}},
		{"other.example", brief{false, false, false, "", "other.example"}},
		{"10.1.2.3:80", brief{true, false, false, "10.1.2.3", ""}},
		{"[fd00::1]:5432", brief{false, false, false, "", "[fd00::1]:5432"}},
		{"169.254.169.254:80", brief{false, false, false, "", "169.254.169.254:80"}},
	} {
		name, port, err := egress.ParseDestination(c.destination)
		if err != nil {
			t.Errorf("%s: %v", c.destination, err)
			continue
		}
		e := egress.Explain(p, name, port, egress.Surroundings{})
		if diff := cmp.Diff(c.want, brief{e.Allowed, e.Resolves, e.Inspect, e.Rule, e.Hint}); diff != "" || e.Why == "" {
			t.Errorf("%s (-want +got):\n%s%+v", c.destination, diff, e)
		}
	}
	if e := egress.Explain(p, "c.example", 443, egress.Surroundings{}); len(e.Requests) != 1 {
		t.Errorf("rules for requests: %q", e.Requests)
	}
	for _, bad := range []string{"", "a b", "a:0", "a:x", "[a]:1", "0x7f.1:80", "::1]:2"} {
		if _, _, err := egress.ParseDestination(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}
