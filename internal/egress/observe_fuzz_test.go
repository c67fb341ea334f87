package egress_test

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
)

// FuzzObservations puts anything into the record of what the network saw: the
// rows read from it can be shown on a terminal, and are the same when written
// and read again.
func FuzzObservations(f *testing.F) {
	f.Add([]byte(`{"host":"api.example.com","addr":"2001:db8::1","port":443,"protocol":"https","process":"curl (7)","verdict":"denied","why":"no rule allows it","bytes_in":1,"bytes_out":2,` +
		`"first":"2026-01-02T03:04:05.678Z","last":"2026-01-02T03:04:05.678Z","count":3}` + "\n"))
	f.Add([]byte("{\"verdict\":\"allowed\",\"host\":\"\\u001b[2J\u202ex\",\"addr\":\"fe80::1%eth0\"}\n{torn"))
	f.Add([]byte(`{"verdict":"x","count":-1,"bytes_in":-9223372036854775808,"first":"0000-01-01T00:00:00+23:59"}`))
	f.Add([]byte("\n\nnull\n[]\n7"))
	f.Fuzz(func(t *testing.T, content []byte) {
		dir := t.TempDir()
		before, after := filepath.Join(dir, "before"), filepath.Join(dir, "after")
		if err := os.WriteFile(before, content, 0o600); err != nil {
			t.Fatal(err)
		}
		all, err := egress.ReadObservations(before)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range all {
			for _, text := range []string{one.Host, one.Protocol, one.Process, one.Verdict, one.Rule, one.Why, one.Method, one.Path} {
				if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) && r != '\uFFFD' }) || len(text) > 256 {
					t.Errorf("%q is read as %q", content, text)
				}
			}
		}
		rows, again := egress.NewObservations(0), egress.NewObservations(0)
		if err := errors.Join(rows.Load(before), rows.Save(after), again.Load(after)); err != nil {
			t.Fatalf("%q: %v", content, err)
		}
		if diff := cmp.Diff(rows.Snapshot(), again.Snapshot(), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
			t.Errorf("%q (-written +read):\n%s", content, diff)
		}
	})
}
