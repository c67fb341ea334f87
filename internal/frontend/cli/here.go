package cli

import (
	"path"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// inHere is a path inside as it is typed in the part here of the project: one
// that is not absolute and does not begin with ~ is relative to it. A slash at
// its end stays.
func inHere(here, name string) string {
	if here == "" || name == "" || path.IsAbs(name) || name == "~" || strings.HasPrefix(name, "~/") {
		return name
	}
	joined := path.Join(here, name)
	if strings.HasSuffix(name, "/") && !strings.HasSuffix(joined, "/") {
		joined += "/"
	}
	return joined
}

// standIn makes the part of the project in which the user stands the working
// directory, unless a flag names one.
func (o *execOptions) standIn(e useCases, dir string) {
	if o.workDir == "" {
		o.here = e.Within(dir)
	}
}

// directory is where the command runs.
func (o *execOptions) directory() string {
	if o.workDir != "" {
		return o.workDir
	}
	return o.here
}

// lost adds a hint where the current directory does not exist inside.
func (o *execOptions) lost(err error) error {
	if o.here != "" && fault.KindOf(err) == fault.Invalid && strings.Contains(err.Error(), "cannot run in ") {
		return fault.Wrap("", err, "the current directory %q is not there inside", o.here).
			WithHint("litterbox %s %s -w . -- …, which runs at the top of the project", o.kind, o.name)
	}
	return err
}
