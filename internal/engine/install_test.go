package engine_test

import (
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// An impossible installation is refused before a place is made, with a hint.
func TestInstallRefuses(t *testing.T) {
	w, ctx := begun(t)
	for name, c := range map[string]struct {
		packages []string
		want     fault.Kind
	}{
		"no package":               {nil, fault.Invalid},
		"an option":                {[]string{"--allow-downgrades"}, fault.Invalid},
		"a path":                   {[]string{"../etc/passwd"}, fault.Invalid},
		"a file that is not there": {[]string{"./gone.deb"}, fault.NotFound},
		"a driver that has none":   {[]string{"ripgrep"}, fault.Unsupported},
	} {
		_, err := w.Install(ctx, engine.InstallRequest{Dir: w.dir, Name: "fix", Packages: c.packages})
		if fault.KindOf(err) != c.want || fault.HintOf(err) == "" {
			t.Errorf("%s: %v, try %q", name, err, fault.HintOf(err))
		}
	}
	infos, err := w.List(ctx, w.dir, false)
	if err != nil || len(infos) != 1 {
		t.Errorf("%d sandboxes are there, %v", len(infos), err)
	}
}
