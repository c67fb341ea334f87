package redteam

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/redteam/probe"
)

func kernelAttacks() []Attack {
	all := []Attack{{
		name: "enter new namespaces",
		full: "the control needs a user namespace",
		try: func(ctx context.Context, _ *world, p place) (outcome, error) {
			answers, err := p.probe(ctx, "namespaces")
			return answered(answers), err
		},
	}}
	for _, about := range []string{probe.Namespaces, probe.Subsystems, probe.Sockets, probe.Rights, probe.Terminals, probe.Inodes} {
		all = append(all, Attack{
			name:    "make forbidden system calls: " + about,
			control: bare, full: "the filter of the degraded tier answers otherwise",
			try: func(ctx context.Context, _ *world, p place) (outcome, error) { return deniedCalls(ctx, p, about) },
		})
	}
	for _, entry := range []string{"int80", "x32"} {
		all = append(all, Attack{
			name: "enter the kernel by another door: " + entry,
			skip: func(w *world) string {
				if runtime.GOARCH != "amd64" {
					return "this architecture has one way into the kernel"
				}
				if entry == "int80" {
					return withoutEntry(w.run(context.Background(), w.base, w.probing("foreign", entry)...))
				}
				return ""
			},
			try: func(ctx context.Context, _ *world, p place) (outcome, error) {
				got, err := p.probed(ctx, "foreign", entry)
				const killed = 128 + 31 // SIGSYS
				back := strings.Contains(got.stdout, `"`+entry+`"`)
				if err == nil && !back && got.code != killed {
					err = fmt.Errorf("the probe did not run: %s", got.said())
				}
				if back {
					return outcome{escaped: true, seen: "the call comes back"}, err
				}
				return outcome{seen: "the process is killed by SIGSYS"}, err
			},
		})
	}
	return all
}

// withoutEntry returns the reason to skip an entry that the kernel does not have, by
// the end of a call outside, or nothing.
func withoutEntry(outside result) string {
	if probe.NoEntry(outside.code, outside.stderr) {
		return probe.WhyNoEntry
	}
	return ""
}

// deniedCalls compares the answers of system calls with those required. The
// control, without a filter, must answer differently.
func deniedCalls(ctx context.Context, p place, about string) (outcome, error) {
	answers, err := p.probe(ctx, "calls")
	if err != nil {
		return outcome{}, err
	}
	wanted := probe.Denied()[about]
	var different []string
	for name, answer := range wanted {
		if answers[name] != answer {
			different = append(different, name)
		}
	}
	slices.Sort(different)
	seen := fmt.Sprintf("%d of %d are refused as they must be", len(wanted)-len(different), len(wanted))
	if p.inside() && len(different) > 0 {
		seen += ", but not " + strings.Join(different, ", ")
	}
	return outcome{escaped: len(different) > 0, seen: seen}, nil
}
