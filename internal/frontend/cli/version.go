package cli

import (
	"context"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

type versionOptions struct {
	console *console
	version string
	json    bool
}

func newVersion(s *session) *cobra.Command {
	o := &versionOptions{console: s.console, version: s.version}
	cmd := &cobra.Command{
		Use:               "version",
		Short:             "Print the version",
		Example:           "  litterbox version --json",
		Args:              wantArgs(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runVersion(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON object")
	return cmd
}

// versionDocument is what version --json prints.
type versionDocument struct {
	Version string `json:"version"`
	Commit  string `json:"commit"` // empty when the build did not record it
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

func runVersion(_ context.Context, o *versionOptions) error {
	v := versionDocument{Version: o.version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if build, ok := debug.ReadBuildInfo(); ok {
		if v.Version == "" {
			v.Version = build.Main.Version
		}
		for _, setting := range build.Settings {
			if setting.Key == "vcs.revision" {
				v.Commit = setting.Value
			}
		}
	}
	if v.Version == "" {
		v.Version = "(devel)"
	}
	if o.json {
		return o.console.document(v)
	}
	commit := ""
	if v.Commit != "" && !strings.Contains(v.Version, short(v.Commit)) { // a build between releases is named after it
		commit = " " + short(v.Commit)
	}
	return o.console.print("litterbox %s%s %s %s/%s\n", v.Version, commit, v.Go, v.OS, v.Arch)
}
