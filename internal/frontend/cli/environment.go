package cli

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// environment is the set of variables that -e and --env-file give a command. A
// typed value shows in the list of processes as long as this program runs; a name
// alone and a file keep it out of there.
type environment struct {
	pairs []string
	files []string

	values []string // K=V, those of files first; after read
}

func (v *environment) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVarP(&v.pairs, "env", "e", nil, "set `K=V` in the environment of CMD, or K to what it is here;\nmay be repeated")
	f.StringArrayVar(&v.files, "env-file", nil, "set the variables of `FILE`, a K=V or K a line; - is standard input")
}

// read completes the variables, before anything is made or started.
func (v *environment) read(cmd *cobra.Command, c *console) error {
	for _, name := range v.files {
		content, err := c.readAll(name)
		if err != nil {
			return fault.Wrap(fault.Invalid, err, "cannot read the environment file %q", name).WithHint("%s --help", cmd.CommandPath())
		}
		pairs, err := c.environmentFile(cmd.CommandPath(), name, content)
		if err != nil {
			return err
		}
		v.values = append(v.values, pairs...)
	}
	for _, pair := range v.pairs {
		if key, _, _ := strings.Cut(pair, "="); key == "" {
			return usageError(cmd, "-e %q is not of the form K=V or K", pair)
		}
		pair, err := c.passOn(cmd.CommandPath(), pair)
		if err != nil {
			return err
		}
		v.values = append(v.values, pair)
	}
	return nil
}

// maxEnvironmentFile is more than the kernel passes to a program.
const maxEnvironmentFile = 1 << 20

// readAll reads a small file, or standard input, which nothing else reads then.
func (c *console) readAll(name string) ([]byte, error) {
	from := c.stdin
	if name == "-" {
		c.stdin = strings.NewReader("")
	} else {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		from = file
	}
	content, err := io.ReadAll(io.LimitReader(from, maxEnvironmentFile+1))
	if err == nil && len(content) > maxEnvironmentFile {
		err = fault.New(fault.Invalid, "it is larger than 1 MiB")
	}
	return content, err
}

// environmentFile reads lines of K=V, where the value is taken as written, and of
// K. Empty lines and those that begin with # are skipped.
func (c *console) environmentFile(command, name string, content []byte) ([]string, error) {
	var pairs []string
	lines := bufio.NewScanner(bytes.NewReader(content))
	lines.Buffer(nil, maxEnvironmentFile)
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimLeft(strings.TrimSuffix(lines.Text(), "\r"), " \t")
		if line == "" || line[0] == '#' {
			continue
		}
		key, _, _ := strings.Cut(line, "=")
		if key == "" || strings.ContainsAny(key, " \t") {
			// The line may hold a secret: only its number is named.
			return nil, fault.New(fault.Invalid, "cannot read line %d of %q: it is not of the form K=V or K", number, name)
		}
		pair, err := c.passOn(command, line)
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, pair)
	}
	return pairs, lines.Err()
}

// passOn completes a name without a value, for the command of that path.
func (c *console) passOn(command, pair string) (string, error) {
	if strings.Contains(pair, "=") {
		return pair, nil
	}
	value := c.env(pair)
	if value == "" {
		return "", fault.New(fault.Invalid, "cannot pass %q on: it is not set here", pair).WithHint("%s --env %s=VALUE", command, pair)
	}
	return pair + "=" + value, nil
}
