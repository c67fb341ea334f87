package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

type secretsOptions struct {
	console *console
	list    func(ctx context.Context, dir string) ([]engine.Secret, error)
	set     func(context.Context, engine.SecretRequest) (string, error)
	remove  func(context.Context, engine.SecretRequest) (string, error)
	test    func(context.Context, engine.SecretRequest) ([]engine.Secret, error)

	action  string
	request engine.SecretRequest
	json    bool
}

func newSecrets(s *session) *cobra.Command {
	o := &secretsOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "secrets [list|set|remove|test] [NAME]",
		Short: "Store values that programs inside use and never see",
		Long: `List, store, remove and test the values of secrets. A table [secrets.NAME] in
.litterbox.toml, or in your own configuration, names the source of a value and the
hosts that may receive it. Inside, the variable NAME holds a placeholder; the
keeper replaces it with the value on the way to those hosts.

set reads the value from the terminal, without showing it, or from standard
input, never from an argument. It stores it in the keyring of the system, or, with
--age or if no keyring answers, in an encrypted file. test reads each value and
shows what keeps it from being used. No command shows a value.`,
		Example: `  litterbox secrets set anthropic
  pass show github | litterbox secrets set github
  litterbox secrets list
  litterbox secrets test ANTHROPIC_API_KEY
  litterbox secrets remove anthropic`,
		Args:              wantArgs(0, 2),
		ValidArgsFunction: s.complete(completeSecret),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			o.list, o.set, o.remove, o.test = e.Secrets, e.SetSecret, e.RemoveSecret, e.TestSecrets
			o.request.Dir, o.action = dir, "list"
			if len(args) > 0 {
				o.action = args[0]
			}
			if len(args) > 1 {
				o.request.Name = args[1]
			}
			return runSecrets(ctx, o)
		}),
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON: an array for list and test, an object for set and remove")
	cmd.Flags().BoolVar(&o.request.Age, "age", false, "with set and remove: the encrypted file, also where a keyring answers")
	return cmd
}

// completeSecret gives the actions on secrets, and the names that each takes: of
// variables, and of stored values that no configuration names.
func completeSecret(ctx context.Context, e useCases, dir string, args []string, _ string) ([]string, error) {
	switch {
	case len(args) == 0:
		return []string{"list", "set", "remove", "test"}, nil
	case len(args) > 1 || args[0] == "list":
		return nil, nil
	}
	all, err := e.Secrets(ctx, dir)
	var names []string
	for _, one := range all {
		kind, entry, _ := strings.Cut(one.From, ":")
		isStored := kind == "keyring" || kind == "age"
		switch {
		case one.Name == "" && args[0] != "test":
			names = append(names, entry)
		case one.Name != "" && (args[0] == "test" || isStored && (args[0] == "set" || one.Stored != "")):
			names = append(names, one.Name)
		}
	}
	return names, err
}

func runSecrets(ctx context.Context, o *secretsOptions) error {
	named := o.request.Name != ""
	switch {
	case o.action == "list" && !named:
		return listSecrets(ctx, o)
	case o.action == "test":
		return testSecrets(ctx, o)
	case o.action == "set" && named:
		return setSecret(ctx, o)
	case o.action == "remove" && named:
		from, err := o.remove(ctx, o.request)
		if err != nil {
			return err
		}
		return o.said("removed", from)
	case o.action == "set" || o.action == "remove":
		return fault.New(fault.Invalid, "cannot %s a secret: no name given", o.action).WithHint("litterbox secrets %s NAME", o.action)
	case o.action == "list":
		return fault.New(fault.Invalid, "cannot list one secret: list takes no name").WithHint("litterbox secrets test %s", o.request.Name)
	}
	return fault.New(fault.Invalid, "cannot %q secrets: it is list, set, remove or test", o.action).WithHint("litterbox secrets --help")
}

// storedSecret is the JSON of set and remove.
type storedSecret struct {
	From string `json:"from"`
}

func (o *secretsOptions) said(verb, from string) error {
	if o.json {
		return o.console.document(storedSecret{from})
	}
	return o.console.print("%s %s\n", verb, from)
}

func setSecret(ctx context.Context, o *secretsOptions) error {
	o.request.Read = func(ctx context.Context) ([]byte, error) { return readSecret(ctx, o.console, o.request.Name) }
	from, err := o.set(ctx, o.request)
	if err != nil {
		return err
	}
	if err := o.said("stored", from); err != nil || o.json {
		return err
	}
	all, err := o.list(ctx, o.request.Dir)
	if err != nil {
		return err
	}
	_, entry, _ := strings.Cut(from, ":")
	elsewhere := ""
	for _, one := range all {
		switch {
		case one.Name == "":
		case one.From == from:
			return nil
		case one.From == "keyring:"+entry, one.From == "age:"+entry:
			elsewhere = fmt.Sprintf("[secrets.%s] names %s, where nothing was stored; to use this value: from = %q", one.Name, one.From, from)
		}
	}
	if elsewhere != "" {
		o.console.note("%s", elsewhere)
		return nil
	}
	o.console.note("no configuration uses it yet; add to yours or to .litterbox.toml:\n  [secrets.%s]\n  from = %q\n  hosts = [\"api.example.com\"]", variable(o.request.Name), from)
	return nil
}

// variable proposes a name of a variable for an entry.
func variable(entry string) string {
	name := strings.Map(func(r rune) rune {
		if r == '-' || r == '.' {
			return '_'
		}
		return r
	}, strings.ToUpper(entry))
	if name[0] >= '0' && name[0] <= '9' {
		name = "_" + name
	}
	return name
}

// mostSecret is more bytes than a value may have.
const mostSecret = 64 << 10

// readSecret reads a value from the terminal without showing it, or from
// standard input.
func readSecret(ctx context.Context, c *console, name string) ([]byte, error) {
	file, ok := c.stdin.(*os.File)
	if ok && term.IsTerminal(int(file.Fd())) {
		value, err := readHidden(ctx, file, func() error {
			_, err := io.WriteString(c.stderr, "value of "+clean(name)+" (not shown): ")
			return err
		})
		_, newline := io.WriteString(c.stderr, "\n")
		if ctx.Err() != nil {
			return nil, fault.Wrap(fault.Canceled, ctx.Err(), "cannot read the value of %q from the terminal", name)
		}
		if err := errors.Join(err, newline); err != nil {
			return nil, fault.Wrap(fault.Unavailable, err, "cannot read the value of %q from the terminal", name)
		}
		return value, nil
	}
	value, err := io.ReadAll(io.LimitReader(c.stdin, mostSecret))
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot read the value of %q from standard input", name)
	}
	if len(bytes.TrimSpace(value)) == 0 {
		return nil, fault.New(fault.Invalid, "cannot store the secret %q: standard input is empty", name).
			WithHint("litterbox secrets set %s", name)
	}
	return value, nil
}

func listSecrets(ctx context.Context, o *secretsOptions) error {
	all, err := o.list(ctx, o.request.Dir)
	if err != nil {
		return err
	}
	if o.json {
		return o.console.document(list(all))
	}
	if len(all) == 0 {
		o.console.note("no secrets; litterbox secrets set NAME stores a value, and [secrets.NAME] in .litterbox.toml names it")
		return nil
	}
	rows := [][]string{{"NAME", "FROM", "HOSTS", "IN", "STORED"}}
	for _, one := range all {
		name := one.Name
		if name == "" {
			name = "-"
		}
		if !one.Counts {
			name += " (needs trust)"
		}
		rows = append(rows, []string{name, one.From, strings.Join(one.Hosts, " "), strings.Join(one.In, " "), one.Stored})
	}
	return o.console.table(rows)
}

func testSecrets(ctx context.Context, o *secretsOptions) error {
	all, err := o.test(ctx, o.request)
	if err != nil {
		return err
	}
	if o.json {
		err = o.console.document(list(all))
	} else if len(all) == 0 {
		o.console.note("no configuration uses a secret")
	} else {
		rows := [][]string{{"NAME", "FROM", "HOSTS", "RESULT"}}
		for _, one := range all {
			result := "ok"
			switch {
			case one.Problem != "":
				result = one.Problem
			case len(one.Runs) > 0:
				result = "ok in " + strings.Join(one.Runs, ", ") + ", which allows its hosts"
			}
			rows = append(rows, []string{one.Name, one.From, strings.Join(one.Hosts, " "), result})
		}
		err = o.console.table(rows)
	}
	if err != nil {
		return err
	}
	for _, one := range all {
		if one.Problem != "" {
			return fault.New(fault.Unavailable, "cannot use the secret %q: %s", one.Name, clean(one.Problem))
		}
	}
	return nil
}
