package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

func newGolden(s *session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "golden list|show|log|update|delete|export|import",
		Short: "See, update, delete, export and import goldens",
		Long: `See, update, delete, export and import goldens: what new sandboxes begin with, in
addition to the files of their base. litterbox build makes one.`,
		Example: `  litterbox golden list
  litterbox golden export -o golden.tgz`,
		Args: noSuchGolden,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newGoldenList(s), newGoldenShow(s), newGoldenLog(s), newGoldenUpdate(s), newGoldenDelete(s), newGoldenExport(s), newGoldenImport(s))
	return cmd
}

func newGoldenList(s *session) *cobra.Command {
	var json bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the goldens of the repository",
		Long: `List the goldens of the repository. STALE names the inputs of a golden that differ
at HEAD; USED counts the sandboxes that began with it. DRIVER shows where each is,
if they are on several machines.`,
		Example: "  litterbox golden list\n  litterbox golden list --json",
		Args:    wantArgs(0, 0),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, _ []string) error {
			found, err := e.Goldens(ctx, dir)
			if err != nil {
				return err
			}
			if json {
				return s.console.document(list(found))
			}
			if len(found) == 0 {
				return s.console.print("no goldens; litterbox build makes one\n")
			}
			several := slices.ContainsFunc(found, func(one engine.Golden) bool { return one.Driver != found[0].Driver })
			rows := [][]string{{"NAME", "BUILT", "BASE", "SIZE", "USED", "STALE"}}
			if several {
				rows[0] = slices.Insert(rows[0], 1, "DRIVER")
			}
			for _, one := range found {
				stale := "no"
				if len(one.Stale) > 0 {
					stale = clean(strings.Join(one.Stale, ", "))
				}
				row := []string{clean(one.Name), ago(s.console.now(), one.CreatedAt), short(one.Base), amount(one.Bytes), fmt.Sprint(len(one.UsedBy)), stale}
				if several {
					row = slices.Insert(row, 1, clean(one.Driver))
				}
				rows = append(rows, row)
			}
			return s.console.table(rows)
		}),
	}
	cmd.Flags().BoolVar(&json, "json", false, "print a JSON array; sizes are in bytes")
	return cmd
}

func newGoldenShow(s *session) *cobra.Command {
	var json bool
	cmd := &cobra.Command{
		Use:               "show [NAME]",
		Short:             "Show what a golden was made from, and who uses it",
		Example:           "  litterbox golden show",
		Args:              wantArgs(0, 1),
		ValidArgsFunction: s.goldenNames(),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			one, err := e.GoldenOf(ctx, dir, optional(args))
			if err != nil {
				return err
			}
			if json {
				return s.console.document(one)
			}
			image := "this machine's own userland"
			if one.Image != nil {
				image = one.Image.Reference
			}
			or := func(names []string, none string) string {
				if len(names) == 0 {
					return none
				}
				return clean(strings.Join(names, ", "))
			}
			made := ago(s.console.now(), one.CreatedAt) + " in " + (time.Duration(one.Took*1000) * time.Millisecond).Round(time.Millisecond).String()
			if one.Imported {
				made += ", imported"
			}
			return s.console.table([][]string{
				{"name", clean(one.Name)}, {"built", made}, {"base", short(one.Base) + " " + clean(one.BaseRef)}, {"image", clean(image)}, {"driver", clean(one.Driver)},
				{"size", amount(one.Bytes)}, {"project", clean(one.Repository)}, {"home", clean(one.Home)},
				{"made from", or(one.MadeFrom, "nothing that could change")}, {"stale", or(one.Stale, "no")}, {"used by", or(one.UsedBy, "no sandbox")}, {"log", or(nonEmpty(one.Log), "none")},
			})
		}),
	}
	cmd.Flags().BoolVar(&json, "json", false, "print one JSON object")
	return cmd
}

func nonEmpty(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

// optional is an argument that may be missing.
func optional(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

func newGoldenLog(s *session) *cobra.Command {
	return &cobra.Command{
		Use:               "log [NAME]",
		Short:             "Print the output of the last build of a golden",
		Long:              "Print the output of the last build of a golden, even if it failed. Values of\nsecrets are redacted.",
		Example:           "  litterbox golden log",
		Args:              wantArgs(0, 1),
		ValidArgsFunction: s.goldenNames(),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			file, err := e.GoldenLog(ctx, dir, optional(args))
			if err != nil {
				return err
			}
			out := &lines{console: s.console}
			_, err = io.Copy(s.console.stdout, file)
			return errors.Join(err, out.flush(), file.Close())
		}),
	}
}

func newGoldenDelete(s *session) *cobra.Command {
	var json bool
	cmd := &cobra.Command{
		Use:   "delete [NAME]",
		Short: "Delete a golden",
		Long: `Delete a golden, on each machine that has one of the name, and its log. Sandboxes that
began with it keep its files; the files leave the disk with the last of these
sandboxes.`,
		Example:           "  litterbox golden delete",
		Args:              wantArgs(0, 1),
		ValidArgsFunction: s.goldenNames(),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			gone, err := e.DeleteGolden(ctx, dir, optional(args))
			if err != nil {
				return err
			}
			if json {
				return s.console.document(gone)
			}
			return s.console.print("deleted golden %s\n", clean(gone.Name))
		}),
	}
	cmd.Flags().BoolVar(&json, "json", false, "print the golden as one JSON object")
	return cmd
}

func newGoldenExport(s *session) *cobra.Command {
	var output, driver string
	cmd := &cobra.Command{
		Use:   "export [NAME]",
		Short: "Write a golden to a file",
		Long: `Write a golden to a file, a compressed archive that litterbox golden import reads.
It holds paths of this machine, so it is of use only where the project and HOME
have the same paths. Where a container or another machine has a golden of the name,
too, --driver or --machine chooses which one. Without -o it is written to standard
output, if that is not a terminal.`,
		Example:           "  litterbox golden export -o golden.tgz",
		Args:              wantArgs(0, 1),
		ValidArgsFunction: s.goldenNames(),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			if output == "" || output == "-" {
				if _, shown := terminal(s.console.stdout); shown {
					return fault.New(fault.Invalid, "cannot write an archive to a terminal").WithHint("litterbox golden export -o golden.tgz")
				}
				_, err := e.ExportGolden(ctx, dir, optional(args), driver, s.console.stdout)
				return err
			}
			one, err := exportTo(ctx, e, dir, optional(args), driver, output)
			if err != nil {
				return err
			}
			return s.console.print("exported golden %s to %s\n", clean(one.Name), clean(output))
		}),
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "write to `FILE`, which is replaced when all of it is written")
	s.driverFlag(cmd, &driver, "export the golden of `DRIVER`")
	return cmd
}

// exportTo writes a file beside the target and moves it into place when it is
// complete.
func exportTo(ctx context.Context, e useCases, dir, name, driver, output string) (one engine.Golden, err error) {
	failed := func(err error) error {
		var name *fs.PathError
		var names *os.LinkError
		switch { // the message names the file that was asked for, not the one beside it
		case errors.As(err, &name):
			err = name.Err
		case errors.As(err, &names):
			err = names.Err
		}
		if errors.Is(err, fs.ErrNotExist) {
			return fault.Wrap(fault.NotFound, err, "cannot write %q", output).WithHint("mkdir -p %s", quoted(filepath.Dir(output)))
		}
		return fault.Wrap(fault.Unavailable, err, "cannot write %q", output)
	}
	file, err := os.CreateTemp(filepath.Dir(output), ".golden-")
	if err != nil {
		return one, failed(err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	one, err = e.ExportGolden(ctx, dir, name, driver, file)
	if closed := file.Close(); err == nil && closed != nil {
		err = failed(closed)
	}
	if err != nil {
		return one, err
	}
	if err := os.Rename(file.Name(), output); err != nil {
		return one, failed(err)
	}
	return one, nil
}

func newGoldenImport(s *session) *cobra.Command {
	var request engine.GoldenImport
	var json bool
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Read a golden from a file",
		Long: `Read a golden from a file that litterbox golden export has written, for the
repository of the current directory. The file is treated as hostile: one with
devices, set-id bits, file system attributes or names that lead out of it is
refused. Its content still runs in your sandboxes, so import only what you would
run. With - as FILE it is read from standard input.

It is for sandboxes of the driver or the machine that it was built on, or, where
that is not there, for those that new sandboxes have; --driver or --machine chooses
another. One in a container is not imported.

A golden of the same name is replaced only with --force. Sandboxes that began with
it keep its files.`,
		Example: "  litterbox golden import golden.tgz\n  litterbox golden import golden.tgz --name tried",
		Args:    wantArgs(1, 1),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			request.Dir, request.From = dir, s.console.stdin
			if args[0] != "-" {
				file, err := os.Open(args[0])
				if err != nil {
					return fault.Wrap(fault.NotFound, err, "cannot read %q", args[0])
				}
				defer file.Close()
				request.From = file
			}
			one, err := e.ImportGolden(ctx, request)
			if err != nil {
				return err
			}
			if json {
				return s.console.document(one)
			}
			return s.console.print("imported golden %s, %s\n", clean(one.Name), amount(one.Bytes))
		}),
	}
	cmd.Flags().StringVar(&request.Name, "name", "", "call it `NAME` instead of what it was called")
	cmd.Flags().BoolVar(&request.Replace, "force", false, "replace a golden of the same name")
	s.driverFlag(cmd, &request.Driver, "import it for sandboxes of `DRIVER`")
	cmd.Flags().BoolVar(&json, "json", false, "print the golden as one JSON object")
	return cmd
}

// completeGolden gives the names of goldens.
func completeGolden(ctx context.Context, e useCases, dir string, args []string, _ string) ([]string, error) {
	if len(args) > 0 {
		return nil, nil
	}
	found, err := e.Goldens(ctx, dir)
	var names []string
	for _, one := range found {
		if !slices.Contains(names, one.Name) {
			names = append(names, one.Name)
		}
	}
	return names, err
}

// goldenNames completes the name of a golden, once.
func (s *session) goldenNames() cobra.CompletionFunc { return s.complete(completeGolden) }

// goldenFlag completes the value of a flag that names a golden.
func (s *session) goldenFlag() cobra.CompletionFunc {
	return s.complete(func(ctx context.Context, e useCases, dir string, _ []string, toComplete string) ([]string, error) {
		return completeGolden(ctx, e, dir, nil, toComplete)
	})
}

func noSuchGolden(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usageError(cmd, "litterbox golden has no command %q", args[0])
}
