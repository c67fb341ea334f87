package tutorial

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestInstalled installs the program as `go install …@latest` does, from tracked
// files alone, into an empty directory, and works with it: the one file is the
// command line, the keeper, the guest and the server for agents.
func TestInstalled(t *testing.T) {
	h := built.New(t)
	bin := filepath.Join(h.Dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	root := filepath.Join("..", "..")
	install := exec.Command("go", "install", "./cmd/litterbox")
	install.Dir = root
	install.Env = append(os.Environ(), "GOBIN="+bin, "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
	if output, err := install.CombinedOutput(); err != nil {
		t.Fatalf("go install: %v\n%s", err, output)
	}
	if entries, err := os.ReadDir(bin); err != nil || len(entries) != 1 || entries[0].Name() != "litterbox" {
		t.Fatalf("installed are %v, %v", entries, err)
	}
	litterbox := filepath.Join(bin, "litterbox")
	must := func(args ...string) string {
		t.Helper()
		got := h.Command(h.Repo, litterbox, args...)
		if got.Code != 0 {
			t.Fatalf("litterbox %q exited %d:\n%s%s", args, got.Code, got.Stdout, got.Stderr)
		}
		return got.Stdout
	}
	if said := must("version"); !strings.HasPrefix(said, "litterbox ") {
		t.Errorf("version says %q", said)
	}
	must("create", "box")
	must("exec", "box", "-m", "Add a note", "--", "sh", "-c", "echo inside >note")
	if said := must("diff", "box", "--name-only"); said != "note\n" {
		t.Errorf("it changed %q", said)
	}
	// Nothing was unpacked: keeper and guest are the installed program itself.
	unpacked, err := filepath.Glob(filepath.Join(h.State, "litterbox", "bin", "*"))
	if err != nil || len(unpacked) > 0 {
		t.Errorf("unpacked are %v, %v", unpacked, err)
	}
	call := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`
	served := h.Command(h.Repo, "sh", "-c", `printf '%s\n' "$1" | "$2" mcp`, "sh", call, litterbox)
	var answer struct {
		Result struct{ ServerInfo struct{ Name string } }
	}
	if err := json.NewDecoder(strings.NewReader(served.Stdout)).Decode(&answer); err != nil || answer.Result.ServerInfo.Name == "" {
		t.Errorf("mcp answers %q, %v\n%s", served.Stdout, err, served.Stderr)
	}
	must("merge", "box")
	if got, err := os.ReadFile(filepath.Join(h.Repo, "note")); err != nil || string(got) != "inside\n" {
		t.Errorf("merged is %q, %v", got, err)
	}
}

// TestEmbeddedIsTracked finds files that a plain build embeds and that git does not
// track: they would be missing from the module that `go install` fetches.
func TestEmbeddedIsTracked(t *testing.T) {
	root := filepath.Join("..", "..")
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		t.Skip("the sources stand in no repository")
	}
	list := exec.Command("go", "list", "-f", `{{range .EmbedFiles}}{{$.Dir}}/{{.}}{{"\n"}}{{end}}`, "./...")
	list.Dir = root
	output, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	embedded := strings.Fields(string(output))
	if len(embedded) == 0 {
		t.Fatal("nothing is embedded: the test shows nothing")
	}
	tracked := exec.Command("git", append([]string{"-c", "safe.directory=*", "ls-files", "--error-unmatch", "--"}, embedded...)...)
	tracked.Dir = root
	if output, err := tracked.CombinedOutput(); err != nil {
		t.Errorf("git ls-files: %v\n%s", err, output)
	}
}
