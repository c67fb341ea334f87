package attack_test

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// asker asks the keeper for packages as a program inside can: over its socket, with
// any bytes. Each line of its arguments is one request; it prints what came back, one
// line each. A number as the first argument repeats them.
const asker = `
import base64, json, socket, struct, sys

def ask(words):
    s = socket.socket(socket.AF_UNIX)
    s.connect("/var/lib/litterbox/install/socket")
    request = {"version": 1, "op": "exec", "exec": {"argv": [base64.b64encode(w.encode()).decode() for w in words]}}
    payload = json.dumps(request).encode()
    s.sendall(b"q" + struct.pack(">I", len(payload)) + payload)
    stream, said = s.makefile("rb"), ""
    while True:
        head = stream.read(5)
        if len(head) < 5:
            return said + " ended"
        payload = stream.read(struct.unpack(">I", head[1:])[0])
        if head[:1] in b"ox":
            said += payload.decode(errors="replace")
        elif head[:1] == b"f":
            return said + " refused: " + json.loads(payload)["text"]
        elif head[:1] == b"d":
            return said + " code %d" % json.loads(payload)["code"]

for _ in range(int(sys.argv[1])):
    for line in sys.argv[2:]:
        print(" ".join(ask(line.split(" ")).split()), flush=True)
`

// askingAttacks ask the keeper for more than packages by name.
func askingAttacks() []attack {
	return []attack{{
		Name: "ask the keeper to install",
		Control: func(w *world) {
			program.Need(w, "dpkg-deb", "apt-get")
			// apt itself runs what such an option names, and a human may name a file.
			w.Shell(w.aptOption("apt-get") + " update")
			if len(w.touched()) == 0 {
				w.Fatal("apt runs nothing, or it is not seen")
			}
			w.sandbox()
			w.Must("install", box, w.askedFor())
			if got := w.Inside(box, "cat", "/usr/share/asked"); got.Stdout != "asked\n" {
				w.Errorf("a package that is installed is not seen: %+v", got)
			}
		},
		Run: func(w *world) {
			if w.Place != "" {
				// A place that has no packages of its own offers nothing to ask.
				w.sandbox()
				if got := w.Inside(box, "test", "-e", "/var/lib/litterbox/install"); got.Code != 1 {
					w.Errorf("the keeper offers to install: %+v", got)
				}
				if got := w.Litterbox("install", box, "jq"); got.Code != 6 {
					w.Errorf("install is not refused: %+v", got)
				}
				return
			}
			program.Need(w, "dpkg-deb", "apt-get", "python3")
			w.sandbox()
			w.Must("create", "other")
			file := w.askedFor()
			const noName = "that is not a package name"
			const noFile = "a program inside may name packages, not files of this machine"
			requests := []struct{ words, answer string }{
				{"-oAPT::Update::Pre-Invoke::=touch${IFS}" + w.Canary + "/attacked", noName},
				{"--option=RootDir=/ jq", noName},
				{"--stop jq", noName},
				{"--dir=" + w.Dir + " jq", noName},
				{"-- jq", noName},
				{"jq;touch${IFS}" + w.Canary + "/attacked", noName},
				{file, noFile},
				// Whether a file is there is not told.
				{file + ".none.deb", noFile},
				{"../" + filepath.Base(file), noFile},
				{filepath.Join(w.Home, ".config"), noName},
				// The sandbox is the one that asks: a name of another is one of a package.
				{"other -- jq", noName},
			}
			script := []string{"1"}
			for _, request := range requests {
				script = append(script, request.words)
			}
			answers := strings.Split(strings.TrimSpace(w.ask(script...)), "\n")
			if len(answers) != len(requests) {
				w.Fatalf("%d answers to %d requests: %q", len(answers), len(requests), answers)
			}
			for n, request := range requests {
				if !strings.Contains(answers[n], request.answer) || !strings.HasSuffix(answers[n], "code 100") {
					w.Errorf("%q is answered %q, want %q", request.words, answers[n], request.answer)
				}
			}
			w.wantUntouched("asking")
			for _, name := range []string{box, "other"} {
				if got := w.Inside(name, "test", "-e", "/usr/share/asked"); got.Code == 0 {
					w.Errorf("sandbox %q has the file's content", name)
				}
			}
			// Nothing is installed without a rule of the network that allows its source.
			if got := w.ask("1", "litterbox-no-such-package"); !strings.HasSuffix(strings.TrimSpace(got), "code 100") {
				w.Errorf("without a rule: %q", got)
			}
			// And not without end.
			const most = 32
			all := strings.Split(strings.TrimSpace(w.ask(fmt.Sprint(most), "--option")), "\n")
			if last := all[len(all)-1]; !strings.Contains(last, fmt.Sprintf("refused: cannot install packages in sandbox %q: it has asked %d times", box, most)) {
				w.Errorf("the last of many is answered %q", last)
			}
		},
	}}
}

// ask runs the asker inside, and returns what it prints.
func (w *world) ask(args ...string) string {
	w.Helper()
	got := w.Inside(box, append([]string{"python3", "-c", asker}, args...)...)
	if got.Code != 0 {
		w.Fatalf("asking: %+v", got)
	}
	return got.Stdout
}

// askedFor makes a package as a file of the host.
func (w *world) askedFor() string {
	w.Helper()
	pkg, file := filepath.Join(w.Dir, "asked"), filepath.Join(w.Dir, "asked.deb")
	w.Put(filepath.Join(pkg, "DEBIAN/control"), "Package: asked\nVersion: 1\nArchitecture: all\nMaintainer: x <x@example.com>\nDescription: asked for\n")
	w.Put(filepath.Join(pkg, "usr/share/asked"), "asked\n")
	w.Shell("chmod -R go+rX " + pkg + "; dpkg-deb --root-owner-group --build " + pkg + " " + file)
	return file
}

// aptOption is a command line of apt's with an option that runs a program, and others
// that keep it in a directory of its own, without a source.
func (w *world) aptOption(apt string) string {
	w.Helper()
	dir := filepath.Join(w.Dir, "apt")
	w.Put(filepath.Join(dir, "none"), "")
	w.Shell("mkdir -p " + dir + "/state/lists/partial " + dir + "/cache/archives/partial")
	return apt + " -o Dir::Etc::sourcelist=" + dir + "/none -o Dir::Etc::sourceparts=" + dir + "/none.d -o Dir::State=" + dir + "/state -o Dir::Cache=" + dir +
		"/cache -o APT::Update::Pre-Invoke::='touch " + w.Canary + "/attacked'"
}
