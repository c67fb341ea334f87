package door_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/door"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// TestInstallAndUninstall leaves every byte of the user's own.
func TestInstallAndUninstall(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]string{
		"empty":          "",
		"ordinary":       "Host example\n  User me\n",
		"no last line":   "Host example\n  User me",
		"windows":        "Host example\r\n\tUser me\r\n",
		"bytes":          "# \xff\x00\nMatch all\n",
		"its own marker": "# Added by litterbox ssh-config --install; --uninstall takes it out.\nHost *\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			files := door.Files(filepath.Join(dir, "state", "ssh"))
			config := filepath.Join(dir, "config")
			if err := os.WriteFile(config, []byte(before), 0o640); err != nil {
				t.Fatal(err)
			}
			link := filepath.Join(dir, "link")
			if err := os.Symlink("config", link); err != nil {
				t.Fatal(err)
			}
			changed, err := door.Config(link).Install(files)
			if err != nil || !changed {
				t.Fatal(changed, err)
			}
			after, _ := os.ReadFile(config)
			if !strings.HasSuffix(string(after), "Include \""+files.Block()+"\"\n"+before) {
				t.Errorf("installed: %q", after)
			}
			if again, err := door.Config(link).Install(files); err != nil || again {
				t.Errorf("a second time: %v, %v", again, err)
			}
			if changed, err := door.Config(link).Uninstall(files); err != nil || !changed {
				t.Errorf("%v, %v", changed, err)
			}
			got, _ := os.ReadFile(config)
			info, err := os.Lstat(config)
			if err != nil || string(got) != before || info.Mode() != 0o640 {
				t.Errorf("afterwards %q, %v, %v", got, info, err)
			}
			if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
				t.Errorf("the link: %v, %v", info, err)
			}
			if again, err := door.Config(link).Uninstall(files); err != nil || again {
				t.Errorf("nothing to take out: %v, %v", again, err)
			}
		})
	}
}

// TestAFileThatWasMadeGoes leaves a home as it was.
func TestAFileThatWasMadeGoes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := door.Config(filepath.Join(dir, ".ssh", "config"))
	files := door.Files(filepath.Join(dir, "ssh"))
	if _, err := config.Install(files); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(string(config)); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := config.Uninstall(files); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(string(config)); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
}

// TestText quotes what a shell and ssh would read.
func TestText(t *testing.T) {
	t.Parallel()
	text, err := door.Files("/state/100%").Text(door.Program{Path: "/it's/here", Args: []string{"serve"}}, ".box")
	if err != nil || !strings.Contains(text, `ProxyCommand '/it'\''s/here' 'serve' '%h'`) || !strings.Contains(text, `"/state/100%%/known_hosts"`) ||
		!strings.Contains(text, "Host *.box \"!*'*\"\n") {
		t.Errorf("%v\n%s", err, text)
	}
	for _, path := range []string{"/with\"quote", "/with\nbreak"} {
		if _, err := door.Files("/state").Text(door.Program{Path: path}, ".box"); fault.KindOf(err) != fault.Unsupported {
			t.Errorf("%q: %v", path, err)
		}
	}
}

// TestHostKey makes one private key, whichever process asks first.
func TestHostKey(t *testing.T) {
	t.Parallel()
	files := door.Files(filepath.Join(t.TempDir(), "ssh"))
	keys := make(chan string, 4)
	for range cap(keys) {
		go func() {
			key, err := files.HostKey()
			if err != nil {
				keys <- err.Error()
				return
			}
			keys <- string(key.PublicKey().Marshal())
		}()
	}
	first := <-keys
	for range cap(keys) - 1 {
		if other := <-keys; other != first {
			t.Errorf("two keys: %q and %q", first, other)
		}
	}
	info, err := os.Stat(filepath.Join(string(files), "host_key"))
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}
