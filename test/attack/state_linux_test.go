package attack_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/threat"
)

// stateAttacks target litterbox's own state, and other sandboxes.
func stateAttacks() []attack {
	return []attack{
		{
			Name: "read another sandbox",
			Control: func(w *world) {
				w.victim()
				w.wantSecret("reading in the same sandbox", w.Litterbox("exec", "victim", "--no-commit", "--", "/bin/sh", "-c", searchEverywhere))
			},
			Run: func(w *world) {
				w.victim()
				w.sandbox()
				w.wantNoSecret("searching from another sandbox", w.Inside(box, "/bin/sh", "-c", searchEverywhere))
				processes := "cat /proc/[0-9]*/environ"
				if w.Place != threat.Degraded { // which hides no command line, and says so
					processes += " /proc/[0-9]*/cmdline"
				}
				w.wantNoSecret("other sandboxes' processes", w.Inside(box, "/bin/sh", "-c", processes))
			},
		},
		{
			Name: "read the state directory",
			Control: func(w *world) {
				w.sandbox()
				if got := w.Shell("find " + w.State).Stdout; !strings.Contains(got, "keys.json") {
					w.Fatalf("the state directory does not show its keys outside either:\n%s", got)
				}
			},
			Run: func(w *world) {
				w.sandbox()
				got := w.Inside(box, "/bin/sh", "-c", "ls -R "+w.State+"; find / \\( -path /usr -o -path /opt -o -path /nix -o -path /snap -o -path /proc -o -path /sys \\) -prune -o -name keys.json -o -name lease.json -o -name guest.sock -o -name keeper.sock -o -name relay.sock 2>/dev/null")
				for _, name := range []string{"keys.json", "lease.json", "keeper.sock", "relay.sock", "guest.sock"} {
					if strings.Contains(got.Stdout, name) {
						w.Errorf("litterbox's own files are inside:\n%s", got.Stdout)
					}
				}
			},
		},
		{
			Name: "use a descriptor of the guest",
			Control: func(w *world) {
				w.openSecret()
				if got := w.outcomes(w.probeOutside("descriptors")); !strings.HasSuffix(got["3"], "/open") {
					w.Fatalf("an open descriptor is not noticed: %v", got)
				}
			},
			Run: func(w *world) {
				w.sandbox()
				// The first commands: later a collected garbage may have closed it.
				for range 3 {
					if got := w.Inside(box, "/bin/sh", "-c", "ls /proc/self/fd | tr '\\n' ' '; cat /proc/self/fd/[3-9] 2>/dev/null"); got.Stdout != "0 1 2 3 " {
						w.Errorf("descriptors inside, of ls and what they hold: %.300q; want those of ls alone", got.Stdout)
					}
				}
				if got := w.outcomes(w.probeInside("descriptors")); len(got) != 3 {
					w.Errorf("a command inside has more than its standard streams: %v", got)
				}
			},
		},
		{
			Name: "use an inherited descriptor",
			Control: func(w *world) {
				w.openSecret()
				w.wantSecret("a descriptor outside", w.Shell("cat /proc/self/fd/3/secret"))
			},
			Run: func(w *world) {
				w.openSecret()
				w.sandbox()
				for _, script := range []string{"cat /proc/self/fd/*/secret", "cat /proc/1/fd/*/secret", "for d in 3 4 5 6 7 8 9 10 11 12; do cat /dev/fd/$d/secret; (cd /proc/self/fd/$d && cat secret); done"} {
					w.wantNoSecret("a descriptor inside", w.Inside(box, "/bin/sh", "-c", script))
				}
				for _, held := range w.keeperDescriptors() {
					if strings.HasPrefix(held, filepath.Join(w.Dir, "open")) {
						w.Errorf("the keeper holds what litterbox was started with: %s", held)
					}
				}
			},
		},
		{
			Name:    "read the host's environment",
			Control: func(w *world) { w.wantSecret("the environment outside", w.With(w.credentials()...).Shell("env")) },
			Run: func(w *world) {
				host := w.With(w.credentials()...)
				host.Must("create", box)
				host.Must("stop", box)
				host.Must("start", box)
				w.wantNoSecret("the environment inside", host.Inside(box, "/bin/sh", "-c", "env; cat /proc/*/environ"))
				host.Must("exec", box, "--", "true")
				w.wantNoSecret("the host's record of it", w.Shell("git log --all --format=%B; grep -rs secret- "+w.State))
			},
		},
		{
			Name: "see the host's processes",
			Control: func(w *world) {
				w.wantSecret("the process list outside", w.Shell(sleeper(w.Secret)+"until grep -as "+w.Secret+" /proc/$!/cmdline; do :; done; kill $!")) // in its execve(2) a process has no arguments
			},
			Run: func(w *world) {
				w.sandbox()
				started := w.Shell(sleeper(w.Secret) + "echo $!")
				pid := strings.TrimSpace(started.Stdout)
				defer w.Shell("kill -9 " + pid)
				w.wantNoSecret("the process list inside", w.Inside(box, "/bin/sh", "-c", "cat /proc/[0-9]*/cmdline; ps -ef"))
				w.Inside(box, "/bin/sh", "-c", "kill -9 "+pid+"; kill -9 -1")
				if w.Shell("kill -0 "+pid).Code != 0 {
					w.Error("a process of the host was ended from inside")
				}
			},
		},
	}
}

// victim is another sandbox with the secret in every place that it owns.
func (w *world) victim() {
	w.Must(append([]string{"create", "victim"}, w.creating()...)...)
	w.Must("exec", "victim", "--", "/bin/sh", "-c",
		"for f in file $HOME/file /tmp/file /var/tmp/file /run/file /dev/shm/file; do echo "+w.Secret+" > $f; done; "+
			"REMEMBERED="+w.Secret+" "+sleeper(w.Secret))
}

// sleeper starts a process in the background whose arguments hold a text.
func sleeper(text string) string {
	return "/bin/sh -c 'sleep 300; : " + text + "' </dev/null >/dev/null 2>&1 & "
}

const searchEverywhere = `grep -rhs secret- . $HOME /tmp /var/tmp /run /dev/shm /home /root /var | head -c 100000`

// openSecret makes every command of this host inherit a directory with the
// secret, without the close-on-exec flag: descriptor 3.
func (w *world) openSecret() {
	w.Helper()
	dir := filepath.Join(w.Dir, "open")
	w.Put(filepath.Join(dir, "secret"), w.Secret)
	file, err := os.Open(dir)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = file.Close() })
	w.Files = []*os.File{file}
}

// keeperDescriptors lists where the keeper's descriptors lead.
func (w *world) keeperDescriptors() []string {
	w.Helper()
	var status struct {
		Lease struct{ Holder string }
	}
	if err := json.Unmarshal([]byte(w.Must("status", box, "--json")), &status); err != nil {
		w.Fatal(err)
	}
	var holder struct{ PID json.Number }
	if err := json.Unmarshal([]byte(status.Lease.Holder), &holder); err != nil {
		w.Fatalf("cannot find the keeper in %q: %v", status.Lease.Holder, err)
	}
	var open []string
	err := filepath.WalkDir("/proc/"+holder.PID.String()+"/fd", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			if to, err := os.Readlink(path); err == nil {
				open = append(open, to)
			}
		}
		return err
	})
	if err != nil || len(open) < 3 {
		w.Fatalf("cannot list the keeper's descriptors: %q, %v", open, err)
	}
	return open
}

func (w *world) credentials() []string {
	var env []string
	for _, name := range []string{
		"AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "ANTHROPIC_API_KEY", "SSH_AUTH_SOCK", "DATABASE_URL", "GIT_ASKPASS",
		"KUBECONFIG", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "LD_PRELOAD_HINT", "PYTHONSTARTUP", "http_proxy",
	} {
		env = append(env, name+"="+w.Secret)
	}
	return env
}
