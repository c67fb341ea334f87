package attack_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// keptBy are the variables that a keeper may have of its client: it lives on
// for days, and API keys have no business in it.
var keptBy = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME",
	"XDG_RUNTIME_DIR", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH",
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "GORACE", "GOCOVERDIR",
}

// A process that outlives its client has nothing of the client's environment
// that it does not need.
func TestEnvironmentEndsWithItsClient(t *testing.T) {
	for name, c := range map[string]struct{ env, create []string }{
		"full":     {nil, nil},
		"degraded": {[]string{"LITTERBOX_TIER=degraded"}, []string{"--allow-degraded"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := built.New(t)
			h = h.With(append(c.env, "VENDOR_API_KEY=of-the-client", "LD_LIBRARY_PATH=/of-the-client")...)
			// The control: the client itself has it, and it can be read there.
			if got := h.Command(h.Repo, "/bin/sh", "-c", "cat /proc/$$/environ").Stdout; !strings.Contains(got, "VENDOR_API_KEY=of-the-client") {
				t.Fatalf("the client has no key: %q", got)
			}
			h.Must(append([]string{"create", box}, c.create...)...)
			seen := look(t, h, true)
			// One that attaches gets no more than one that starts.
			end, err := os.FindProcess(seen)
			if err == nil {
				err = end.Kill()
			}
			if err != nil {
				t.Fatal(err)
			}
			h.Must("exec", box, "--", "true")
			if again := look(t, h, false); again == seen {
				t.Error("the keeper is the same: the test shows nothing")
			}
		})
	}
}

// look checks the keeper of the sandbox and everything below it, and returns its
// number. One that has started the place has the place's processes below it.
func look(t *testing.T, h *program.Host, started bool) (keeper int) {
	t.Helper()
	kept, guest, err := h.Processes(box)
	if err != nil || kept.PID <= 1 {
		t.Fatal(kept, err)
	}
	keeper = kept.PID
	env, err := os.ReadFile("/proc/" + strconv.Itoa(keeper) + "/environ")
	if err != nil {
		t.Fatal(err)
	}
	entries := strings.FieldsFunc(string(env), func(r rune) bool { return r == 0 })
	if !slices.Contains(entries, "HOME="+h.Home) {
		t.Errorf("the keeper does not know its home: %q", entries)
	}
	for _, entry := range entries {
		if key, _, _ := strings.Cut(entry, "="); !slices.Contains(keptBy, key) {
			t.Errorf("the keeper has %s", entry)
		}
	}
	// The guest and the stages before it get nothing; an environment that an
	// ordinary user may not read is safe from others, too.
	looked := 0
	for _, pid := range append(descendants(t, keeper), guest.PID) {
		if pid == 0 {
			continue // a tier whose lease does not say
		}
		env, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) || errors.Is(err, fs.ErrPermission) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		looked++
		if strings.Contains(string(env), "of-the-client") || strings.Contains(string(env), "HOME="+h.Home) {
			t.Errorf("process %d has %q", pid, env)
		}
	}
	if started && looked == 0 && os.Getuid() == 0 {
		t.Error("no process of the place was looked at")
	}
	return keeper
}

// descendants returns the processes that one has started, and theirs.
func descendants(t *testing.T, pid int) []int {
	t.Helper()
	var all []int
	tasks, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		children, err := os.ReadFile(task)
		if err != nil {
			continue // the thread has ended
		}
		for _, word := range strings.Fields(string(children)) {
			child, err := strconv.Atoi(word)
			if err != nil {
				t.Fatal(err)
			}
			all = append(append(all, child), descendants(t, child)...)
		}
	}
	return all
}
