package namespace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Whether a logout ends sandboxes, on machines that are only files.
func TestLogout(t *testing.T) {
	t.Parallel()
	const kills = "[Login]\nKillUserProcesses=yes\n"
	for name, c := range map[string]struct {
		files map[string]string
		user  string
		found string // a part of the finding; empty for none
		mend  string
	}{
		"no systemd":           {nil, "me", "", ""},
		"the default":          {map[string]string{"etc/systemd/logind.conf": "[Login]\n#KillUserProcesses=yes\n"}, "me", "", ""},
		"it kills":             {map[string]string{"etc/systemd/logind.conf": kills}, "me", "ends running sandboxes", "loginctl enable-linger"},
		"in another section":   {map[string]string{"etc/systemd/logind.conf": "[Other]\nKillUserProcesses=yes\n"}, "me", "", ""},
		"spelled otherwise":    {map[string]string{"usr/lib/systemd/logind.conf": "[Login]\n KillUserProcesses = On \n"}, "me", "ends running", "enable-linger"},
		"a file beside":        {map[string]string{"usr/lib/systemd/logind.conf.d/50-kill.conf": kills}, "me", "ends running", "enable-linger"},
		"the last word counts": {map[string]string{"etc/systemd/logind.conf": kills, "etc/systemd/logind.conf.d/90.conf": "[Login]\nKillUserProcesses=no\n"}, "me", "", ""},
		"a masked file": {map[string]string{"usr/lib/systemd/logind.conf.d/50-kill.conf": kills,
			"etc/systemd/logind.conf.d/50-kill.conf": ""}, "me", "", ""},
		"root is spared":    {map[string]string{"etc/systemd/logind.conf": kills}, "root", "", ""},
		"root is not":       {map[string]string{"etc/systemd/logind.conf": kills + "KillExcludeUsers=\n"}, "root", "ends running", "enable-linger"},
		"only others":       {map[string]string{"etc/systemd/logind.conf": kills + "KillOnlyUsers=you them\n"}, "me", "", ""},
		"allowed to linger": {map[string]string{"etc/systemd/logind.conf": kills, "var/lib/systemd/linger/me": ""}, "me", "you may linger", "systemd-run --user --scope"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			for path, content := range c.files {
				path = filepath.Join(root, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got := logout(root, c.user)
			if c.found == "" {
				if got != nil {
					t.Errorf("found %+v", got)
				}
				return
			}
			if len(got) != 1 || got[0].OK || got[0].Needed || !strings.Contains(got[0].Found, c.found) || !strings.Contains(got[0].Mend, c.mend) {
				t.Errorf("found %+v", got)
			}
		})
	}
}
