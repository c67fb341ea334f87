package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

type browseOptions struct {
	console *console
	browse  func(context.Context, engine.BrowseRequest) (engine.Browsed, error)
	file    func(context.Context, engine.BrowseRequest, io.Writer) error
	copy    func(ctx context.Context, r engine.BrowseRequest, look func(root, path string) error) error
	program func(ctx context.Context, dir, which string) (string, error)

	request engine.BrowseRequest
	editor  bool
	json    bool
}

func newBrowse(s *session) *cobra.Command {
	o := &browseOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "browse NAME [PATH]",
		Short: "Look through a sandbox's committed files",
		Long: `Show what a sandbox has committed, without touching your checkout and without
starting the sandbox: the list of all files, or of those below PATH, or the content
of the file that PATH names, in git's pager. PATH is relative to the current
directory.

With --editor it opens in git's editor instead: a directory of read-only copies,
or the one file. The editor starts outside of your checkout, and the copies are
gone when it ends, so it has to wait (code --wait). A symbolic link is shown as a
file that contains its target. litterbox path names a directory that stays.`,
		Example: `  litterbox browse fix-login
  litterbox browse fix-login src/login.go --at 3
  litterbox browse fix-login docs --editor`,
		Args:              wantArgs(1, 2),
		ValidArgsFunction: s.thenComplete(completePath),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			o.browse, o.file, o.copy, o.program = e.Browse, e.BrowseFile, e.BrowseCopy, e.GitCommand
			o.request.Place = engine.Place{Dir: dir, Name: args[0]}
			if len(args) > 1 {
				o.request.Path = path.Clean(inHere(e.Within(dir), args[1]))
				if p := o.request.Path; p == ".." || strings.HasPrefix(p, "../") || path.IsAbs(p) {
					return fault.New(fault.Invalid, "cannot browse %q: it is outside of the project", args[1])
				}
			}
			return runBrowse(ctx, o)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&o.request.At, "at", "", "look at a `STEP`: an iteration's number or a snapshot")
	f.BoolVar(&o.editor, "editor", false, "open it in git's editor instead of the pager")
	f.BoolVar(&o.json, "json", false, "print the commit and its files as one JSON object")
	_ = cmd.RegisterFlagCompletionFunc("at", func(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return s.statesOf(cmd, args[0], toComplete)
	})
	return cmd
}

// browseDocument is what browse --json prints.
type browseDocument struct {
	Name   string               `json:"name"`
	Commit string               `json:"commit"`
	Files  []engine.BrowsedFile `json:"files"`
}

func runBrowse(ctx context.Context, o *browseOptions) error {
	if o.editor && o.json {
		return fault.New(fault.Invalid, "cannot both print JSON and open an editor").WithHint("litterbox browse --help")
	}
	if o.editor {
		return o.edit(ctx)
	}
	found, err := o.browse(ctx, o.request)
	if err != nil {
		return err
	}
	_, tty := terminal(o.console.stdout)
	switch {
	case o.json:
		return o.console.document(browseDocument{o.request.Name, found.Commit, list(found.Files)})
	case found.IsFile && !tty:
		return o.file(ctx, o.request, clearing{o.console.progress, o.console.stdout})
	case found.IsFile:
		return o.page(ctx, func(w io.Writer) error { return o.readable(ctx, w) })
	}
	return o.page(ctx, func(w io.Writer) error {
		for _, file := range found.Files {
			if _, err := fmt.Fprintf(w, "%10s  %s\n", sizeOf(file), clean(file.Path)+markOf(file)); err != nil {
				return err
			}
		}
		return nil
	})
}

func sizeOf(file engine.BrowsedFile) string {
	if file.Size < 0 {
		return "-"
	}
	return decimal(int(file.Size))
}

// markOf is the mark that ls -F sets behind a name.
func markOf(file engine.BrowsedFile) string {
	switch file.Mode {
	case "100755":
		return "*"
	case "120000":
		return "@"
	case "160000":
		return "/ (a submodule)"
	}
	return ""
}

// readable writes a file for a terminal, with nothing that would control it.
func (o *browseOptions) readable(ctx context.Context, w io.Writer) error {
	var content bytes.Buffer
	if err := o.file(ctx, o.request, &content); err != nil {
		return err
	}
	if bytes.IndexByte(content.Bytes(), 0) >= 0 {
		_, err := fmt.Fprintf(w, "%s: %d bytes that are no text\n", clean(o.request.Path), content.Len())
		return err
	}
	for line := range strings.Lines(content.String()) {
		parts := strings.Split(strings.TrimRight(line, "\r\n"), "\t")
		for i := range parts {
			parts[i] = clean(parts[i])
		}
		if _, err := fmt.Fprintln(w, strings.Join(parts, "\t")); err != nil {
			return err
		}
	}
	return nil
}
