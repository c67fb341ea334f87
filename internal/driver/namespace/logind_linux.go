package namespace

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// logout says what happens to sandboxes when their user logs out: nothing,
// unless systemd-logind is told to end everything that a session started
// (KillUserProcesses in logind.conf(5)). root is the directory of the machine's
// files.
func logout(root, user string) []Finding {
	settings := logindSettings(root)
	only, excluded := strings.Fields(settings["KillOnlyUsers"]), []string{"root"}
	if set, ok := settings["KillExcludeUsers"]; ok {
		excluded = strings.Fields(set)
	}
	if !isTrue(settings["KillUserProcesses"]) || slices.Contains(excluded, user) || len(only) > 0 && !slices.Contains(only, user) {
		return nil
	}
	finding := Finding{
		Name: "logout", Found: "ends running sandboxes (KillUserProcesses=yes); nothing is lost, and the next command starts them again",
		Mend: "loginctl enable-linger\n  systemd-run --user --scope litterbox start NAME",
	}
	if _, err := os.Stat(filepath.Join(root, "var/lib/systemd/linger", user)); err == nil {
		// Allowed to linger, but only outside the session.
		finding.Found = "ends sandboxes that were started in the session (KillUserProcesses=yes); you may linger, so those started in a scope of their own stay"
		finding.Mend = "systemd-run --user --scope litterbox start NAME"
	}
	return []Finding{finding}
}

// logindSettings reads [Login] of logind.conf and of the files beside it. Of
// two files with the same name the one in the directory named first counts; all
// are read in the order of their names, and the last setting wins.
func logindSettings(root string) map[string]string {
	places := []string{"etc/systemd", "run/systemd", "usr/local/lib/systemd", "usr/lib/systemd"}
	var files []string
	for _, place := range places {
		if main := filepath.Join(root, place, "logind.conf"); readable(main) {
			files = append(files, main)
			break
		}
	}
	byName := map[string]string{}
	for _, place := range slices.Backward(places) {
		found, _ := filepath.Glob(filepath.Join(root, place, "logind.conf.d/*.conf"))
		for _, path := range found {
			byName[filepath.Base(path)] = path
		}
	}
	var names []string
	for name := range byName {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		files = append(files, byName[name])
	}
	settings := map[string]string{}
	for _, path := range files {
		content, err := os.ReadFile(path)
		if err != nil {
			continue // not for us: logind's defaults are harmless
		}
		section := ""
		for line := range strings.Lines(string(content)) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "[") {
				section = line
			}
			if key, value, ok := strings.Cut(line, "="); ok && section == "[Login]" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, ";") {
				settings[strings.TrimSpace(key)] = strings.TrimSpace(value)
			}
		}
	}
	return settings
}

func readable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// isTrue reads a boolean of systemd.syntax(7).
func isTrue(value string) bool {
	return slices.Contains([]string{"1", "yes", "true", "on", "y", "t"}, strings.ToLower(value))
}
