package guest

import (
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// notRunnable is a command that a shell would answer with 126 or 127: an
// outcome with an exit code, not a failure of the sandbox.
type notRunnable struct {
	code int
	name string
	why  string
}

func (n *notRunnable) Error() string { return fmt.Sprintf("cannot run %q: %s", n.name, n.why) }

// exit reports it on the command's stderr.
func (n *notRunnable) exit(w *wire.Writer, r *wire.Exec) (wire.Exit, error) {
	end := "\n"
	if r.Terminal != nil {
		end = "\r\n" // the client's terminal is raw
	}
	if err := w.Frame(wire.KindStderr, []byte(n.Error()+end)); err != nil {
		return wire.Exit{}, err
	}
	return wire.Exit{Code: n.code}, nil
}

// lookPath finds a command as execvp(3) does, in the PATH of env rather than
// the guest's own, and relative to dir.
func lookPath(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		if err := executable(dir, name); err != nil {
			return "", notFound(name, err)
		}
		return name, nil
	}
	if name == "" {
		return "", &notRunnable{codeNotFound, name, "command not found"}
	}
	var denied error
	for _, in := range filepath.SplitList(lookEnv(env, "PATH")) {
		if in == "" {
			in = "."
		}
		path := filepath.Join(in, name)
		if !strings.Contains(path, "/") {
			path = "./" + path
		}
		switch err := executable(dir, path); err {
		case nil:
			return path, nil
		case unix.EACCES, unix.EISDIR:
			denied = err
		}
	}
	if denied != nil {
		return "", notFound(name, denied)
	}
	return "", &notRunnable{codeNotFound, name, "command not found"}
}

func notFound(name string, err error) error {
	switch err {
	case unix.ENOENT, unix.ENOTDIR:
		return &notRunnable{codeNotFound, name, err.Error()}
	}
	return &notRunnable{codeNotExecutable, name, err.Error()}
}

// executable returns why path cannot be executed.
func executable(dir, path string) error {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return err
	}
	switch {
	case st.Mode&unix.S_IFMT == unix.S_IFDIR:
		return unix.EISDIR
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return unix.EACCES
	}
	return unix.Access(path, unix.X_OK)
}

// mergeEnv joins environments; a later value replaces an earlier one.
func mergeEnv(envs ...[]string) []string {
	var merged []string
	at := map[string]int{}
	for _, env := range envs {
		for _, kv := range env {
			key, _, ok := strings.Cut(kv, "=")
			if !ok || key == "" {
				continue
			}
			if i, known := at[key]; known {
				merged[i] = kv
				continue
			}
			at[key] = len(merged)
			merged = append(merged, kv)
		}
	}
	return merged
}

func lookEnv(env []string, key string) string {
	for _, kv := range env {
		if k, v, _ := strings.Cut(kv, "="); k == key {
			return v
		}
	}
	return ""
}
