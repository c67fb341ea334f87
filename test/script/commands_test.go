package script_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/testscript"
)

// commands returns the commands that scripts can use besides testscript's own.
func commands() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"repo":  repo,
		"code":  code,
		"json":  jsonField,
		"retry": retry,
		"pty":   onTerminal,
		"lines": lines,

		"readme": readme,

		"sigkill": sigkill,
		"cmpjson": cmpJSON,
	}
}

// repo DIR makes a repository with one commit and goes there.
func repo(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: repo DIR")
	}
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o755))
	ts.Check(ts.Chdir(dir))
	ts.Check(os.WriteFile(dir+"/README", []byte("hello\n"), 0o644))
	ts.Check(ts.Exec("git", "init", "--quiet"))
	ts.Check(ts.Exec("git", "add", "."))
	ts.Check(ts.Exec("git", "commit", "--quiet", "-m", "first"))
}

// code N CMD... runs CMD, which must exit with N.
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N CMD...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// json FILE PATH WANT compares a field of the JSON in FILE (stdout for the
// last output); PATH is made of keys and indices with dots, and # is a length.
func jsonField(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: [!] json FILE PATH WANT")
	}
	decoder := json.NewDecoder(strings.NewReader(ts.ReadFile(args[0])))
	var value any
	ts.Check(decoder.Decode(&value))
	if _, err := decoder.Token(); err != io.EOF {
		ts.Fatalf("more than one JSON document")
	}
	for _, step := range strings.Split(args[1], ".") {
		next, err := descend(value, step)
		if err != nil {
			ts.Fatalf("%s: %v", args[1], err)
		}
		value = next
	}
	got := fmt.Sprint(value)
	if number, ok := value.(float64); ok {
		got = strconv.FormatFloat(number, 'f', -1, 64)
	}
	if (got == args[2]) == neg {
		ts.Fatalf("%s is %q, and %q was named", args[1], got, args[2])
	}
}

// duration is the one figure of an agent's run that differs each time.
var duration = regexp.MustCompile(`(?m)^(duration +)\S+$`)

// readme checks that README.md shows the last output as it is, except for the
// time it took.
func readme(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 0 {
		ts.Fatalf("usage: [!] readme")
	}
	page, err := os.ReadFile("../../README.md")
	ts.Check(err)
	same := func(text string) string { return duration.ReplaceAllString(text, "$1") }
	output := ts.ReadFile("stdout")
	if shown := output != "" && strings.Contains(same(string(page)), same(output)); shown == neg {
		ts.Fatalf("README.md shows it: %t; it is:\n%s", shown, output)
	}
}

func descend(value any, step string) (any, error) {
	switch value := value.(type) {
	case map[string]any:
		if inner, ok := value[step]; ok {
			return inner, nil
		}
		return nil, fmt.Errorf("no field %q", step)
	case []any:
		if step == "#" {
			return len(value), nil
		}
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(value) {
			return value[i], nil
		}
		return nil, fmt.Errorf("no element %q of %d", step, len(value))
	}
	return nil, fmt.Errorf("%q of something that is neither object nor array", step)
}

// patience is how long retry waits for what is sure to come.
const patience = 2 * time.Minute

// retry CMD... repeats CMD until it succeeds, with ! until it fails.
func retry(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 0 {
		ts.Fatalf("usage: [!] retry CMD...")
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if err := ts.Exec(args[0], args[1:]...); (err != nil) == neg {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%q did not come to that end", args)
		}
	}
}

// pty INPUT CMD... runs CMD on a terminal of 91 columns and 37 rows, types the
// file INPUT and keeps what the terminal shows as stdout. A line of INPUT is
// WANT>>>TYPED: once the terminal has shown WANT, TYPED is typed with Return,
// or a key alone: \x03 for Ctrl-C, \x1a for Ctrl-Z, \x1dd
// for Ctrl-] and d; nothing when it is empty.
func onTerminal(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: [!] pty INPUT CMD...")
	}
	cmd := exec.Command(args[1], args[2:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = environment(ts)
	if path, err := lookPath(ts, args[1]); err == nil {
		cmd.Path, cmd.Err = path, nil
	}
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 37, Cols: 91})
	ts.Check(err)
	defer terminal.Close()

	shown := make(chan []byte)
	go func() {
		defer close(shown)
		for {
			b := make([]byte, 4096)
			n, err := terminal.Read(b)
			if n > 0 {
				shown <- b[:n]
			}
			if err != nil {
				return // EIO: no process holds the other end anymore
			}
		}
	}()
	var screen bytes.Buffer
	timeout := time.After(patience)
	from := 0
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		want, typed, ok := strings.Cut(line, ">>>")
		if !ok {
			ts.Fatalf("a line of %s without >>>: %q", args[0], line)
		}
		for {
			if i := strings.Index(screen.String()[from:], want); i >= 0 {
				from += i + len(want)
				break
			}
			select {
			case b, open := <-shown:
				if !open {
					ts.Fatalf("the terminal ended before it showed %q; it showed:\n%s", want, screen.String())
				}
				screen.Write(b)
			case <-timeout:
				_ = cmd.Process.Kill()
				ts.Fatalf("the terminal never showed %q, but:\n%s", want, screen.String())
			}
		}
		_, err := io.WriteString(terminal, keys(typed))
		ts.Check(err)
	}
	for open := true; open; {
		var b []byte
		select {
		case b, open = <-shown:
			screen.Write(b)
		case <-timeout:
			_ = cmd.Process.Kill()
			ts.Fatalf("the command on the terminal never ended; it showed:\n%s", screen.String())
		}
	}
	err = cmd.Wait()
	_, writeErr := ts.Stdout().Write(screen.Bytes())
	ts.Check(writeErr)
	if (err != nil) != neg {
		ts.Fatalf("the command ended with %v; it showed:\n%s", err, screen.String())
	}
}

func keys(typed string) string {
	switch strings.TrimSuffix(typed, "\n") {
	case "":
		return ""
	case `\x03`:
		return "\x03"
	case `\x1a`:
		return "\x1a"
	case `\x1dd`:
		return "\x1dd"
	}
	return typed
}

func environment(ts *testscript.TestScript) []string {
	var env []string
	for _, key := range []string{"HOME", "PATH", "TERM", "TMPDIR", "LC_ALL", "GIT_CONFIG_NOSYSTEM", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "WORK", "SHELL"} {
		if value := ts.Getenv(key); value != "" {
			env = append(env, key+"="+value)
		}
	}
	return env
}

// lookPath finds a program on the script's PATH, which is not this process's.
func lookPath(ts *testscript.TestScript, name string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	for _, dir := range strings.Split(ts.Getenv("PATH"), ":") {
		if info, err := os.Stat(dir + "/" + name); err == nil && info.Mode().IsRegular() {
			return dir + "/" + name, nil
		}
	}
	return "", exec.ErrNotFound
}

// sigkill keeper|guest NAME kills a process of the sandbox NAME with SIGKILL
// and waits until it is gone. A NAME with a * is that of the one live environment
// which it matches.
func sigkill(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sigkill keeper|guest NAME")
	}
	var status struct {
		Lease struct {
			Holder string `json:"holder"`
			Handle []byte `json:"handle"`
		} `json:"lease"`
	}
	if strings.Contains(args[1], "*") {
		found, err := filepath.Glob(filepath.Join(ts.Getenv("XDG_STATE_HOME"), "litterbox/environments/sandboxes", args[1], "lease.json"))
		ts.Check(err)
		if len(found) != 1 {
			ts.Fatalf("the environments %s are %q", args[1], found)
		}
		ts.Check(json.Unmarshal([]byte(ts.ReadFile(found[0])), &status.Lease))
	} else {
		ts.Check(ts.Exec("litterbox", "status", args[1], "--json"))
		ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &status))
	}
	type process struct {
		PID int `json:"pid"`
	}
	var keeper process
	var handle struct {
		Guest process `json:"guest"`
	}
	ts.Check(json.Unmarshal([]byte(status.Lease.Holder), &keeper))
	ts.Check(json.Unmarshal(status.Lease.Handle, &handle))
	pid := keeper.PID
	if args[0] == "guest" {
		pid = handle.Guest.PID
	}
	if pid <= 1 {
		ts.Fatalf("no %s in %+v", args[0], status)
	}
	ts.Check(syscall.Kill(pid, syscall.SIGKILL))
	for deadline := time.Now().Add(patience); syscall.Kill(pid, 0) == nil; time.Sleep(10 * time.Millisecond) {
		if state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && bytes.Contains(state, []byte(") Z ")) {
			return // dead; the process that inherited it has not looked yet
		}
		if time.Now().After(deadline) {
			ts.Fatalf("process %d outlives SIGKILL", pid)
		}
	}
}

// lines FILE MAX fails if FILE has more than MAX lines.
func lines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: lines FILE MAX")
	}
	most, err := strconv.Atoi(args[1])
	ts.Check(err)
	if n := strings.Count(ts.ReadFile(args[0]), "\n"); n > most {
		ts.Fatalf("%s has %d lines, more than %d", args[0], n, most)
	}
}

// cmpjson FILE FILE NAME FIELD compares a field of the element called NAME in
// two files with a JSON array each.
func cmpJSON(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 4 {
		ts.Fatalf("usage: [!] cmpjson FILE FILE NAME FIELD")
	}
	var found [2]string
	for i, file := range args[:2] {
		var list []map[string]any
		ts.Check(json.Unmarshal([]byte(ts.ReadFile(file)), &list))
		for _, element := range list {
			if element["name"] == args[2] {
				found[i] = fmt.Sprint(element[args[3]])
			}
		}
	}
	if found[0] == "" || (found[0] == found[1]) == neg {
		ts.Fatalf("%s of %s is %q and %q", args[3], args[2], found[0], found[1])
	}
}
