package lima

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/lima/limactl"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/machine"
)

// The defaults of a machine.
const (
	DefaultCPUs   = 4
	DefaultMemory = "8GiB"
	DefaultDisk   = "30GiB"
	DefaultImage  = "debian-13"
)

// minimum is the first Lima whose plain machines run provisioning scripts.
const minimum = "2.0.0"

// The files of a configuration, in the directory of a machine. Lima joins them:
// the first value counts, lists are appended.
const (
	templateFile = "template.yaml"
	defaultsFile = "defaults.yaml"
)

// walls are the settings that count before all others. Lima's plain mode mounts
// nothing, forwards no ports and runs no agent of its own inside. JSON is YAML.
func (m Machine) walls(s machine.VMSettings, base []string) map[string]any {
	text := walls(s, base)
	if m.shown == "" {
		return text
	}
	// Plain mode mounts nothing. What it leaves out besides is left out here.
	text["plain"] = false
	text["mounts"] = []any{map[string]any{"location": m.shown, "mountPoint": m.shown, "writable": true}}
	text["portForwards"] = []any{map[string]any{"guestPortRange": []int{1, 65535}, "proto": "any", "ignore": true}}
	text["provision"] = []any{map[string]any{"mode": "system", "script": provision(s.IdleStop) + provisionEnv}}
	return text
}

// provisionEnv makes the directory of an outpost that is Lima's user's.
const provisionEnv = `mkdir -p ` + thereEnv + `
chmod 1777 ` + thereEnv + `
`

func walls(s machine.VMSettings, base []string) map[string]any {
	text := map[string]any{
		"minimumLimaVersion": minimum,
		"plain":              true,
		"mounts":             []any{},
		"portForwards":       []any{},
		"containerd":         map[string]any{"system": false, "user": false},
		"ssh":                map[string]any{"forwardAgent": false, "forwardX11": false, "loadDotSSHPubKeys": false},
		"propagateProxyEnv":  false,
		"video":              map[string]any{"display": "none"},
		"base":               base,
		"provision":          []any{map[string]any{"mode": "system", "script": provision(s.IdleStop)}},
	}
	if s.CPUs > 0 {
		text["cpus"] = s.CPUs
	}
	for key, value := range map[string]string{"memory": s.Memory, "disk": s.Disk, "vmType": s.Type} {
		if value != "" {
			text[key] = value
		}
	}
	return text
}

// defaults count where nothing else says otherwise.
func defaults(s machine.VMSettings) map[string]any {
	text := map[string]any{"cpus": DefaultCPUs, "memory": DefaultMemory, "disk": DefaultDisk}
	switch image := s.Image; {
	case image == "":
		text["base"] = []string{"template:_images/" + DefaultImage}
	case filepath.IsAbs(image), strings.HasPrefix(image, "https://"):
		text["images"] = []any{map[string]any{"location": image}}
	default:
		text["base"] = []string{"template:_images/" + image}
	}
	return text
}

// provision runs as root at each start of the machine: it sets up what the
// namespace driver needs of a kernel, a directory for the outpost that only root
// can enter, and the watch that shuts an idle machine down. A machine is idle while
// nothing runs there as litterbox-guest: neither a place nor an outpost.
func provision(idle time.Duration) string {
	return `#!/bin/sh
set -eu
for module in overlay nf_tables nft_redir nft_chain_nat xt_REDIRECT; do
	modprobe -q "$module" || true
done
if [ -e /proc/sys/kernel/apparmor_restrict_unprivileged_userns ]; then
	echo 0 >/proc/sys/kernel/apparmor_restrict_unprivileged_userns
fi
mkdir -p ` + there + `
chmod 0700 ` + there + `
cat >` + there + `/idle <<'END'
#!/bin/sh
idle=0
while sleep 10; do
	if pgrep -f '^([^ ]*/)?litterbox-guest ' >/dev/null; then
		idle=0
	elif [ $((idle += 10)) -ge "$1" ]; then
		exec systemctl poweroff
	fi
done
END
systemctl stop litterbox-idle.service 2>/dev/null || true
if [ ` + strconv.FormatInt(int64(idle.Seconds()), 10) + ` -gt 0 ]; then
	systemd-run --quiet --collect --unit=litterbox-idle /bin/sh ` + there + `/idle ` + strconv.FormatInt(int64(idle.Seconds()), 10) + `
fi
`
}

// template writes the configuration and returns the path of the file that Lima should
// read.
func (m Machine) template(s machine.VMSettings) (string, error) {
	dir, override := m.dir, m.options.Override
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", driver.Seal(err, "cannot make the directory of the virtual machine")
	}
	var base []string
	if override != "" {
		switch _, err := os.Stat(override); {
		case err == nil:
			base = append(base, override)
		case !errors.Is(err, fs.ErrNotExist):
			return "", fault.Wrap(fault.Unavailable, err, "cannot read the configuration of the virtual machine")
		}
	}
	base = append(base, filepath.Join(dir, defaultsFile))
	for name, text := range map[string]map[string]any{templateFile: m.walls(s, base), defaultsFile: defaults(s)} {
		data, err := json.MarshalIndent(text, "", "  ")
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, name), append(data, '\n'), 0o600); err != nil {
			return "", driver.Seal(err, "cannot write the configuration of the virtual machine")
		}
	}
	return filepath.Join(dir, templateFile), nil
}

// apart refuses an instance that shares something of this machine. Lima joins
// every instance with files of its own directory (_config/override.yaml), which
// count before the template.
func (m Machine) apart(one limactl.Instance) error {
	var shared []string
	if !one.Config.Plain && m.shown == "" {
		shared = append(shared, "plain: false")
	}
	for _, mount := range one.Config.Mounts {
		if m.shown != "" && filepath.Clean(mount.Location) == m.shown && (mount.MountPoint == "" || filepath.Clean(mount.MountPoint) == m.shown) {
			continue
		}
		shared = append(shared, "the mount "+mount.Location)
	}
	for _, forward := range one.Config.PortForwards {
		if !forward.Ignore {
			shared = append(shared, "a forwarded port")
		}
	}
	if one.Config.SSH.ForwardAgent {
		shared = append(shared, "ssh.forwardAgent")
	}
	for _, network := range one.Config.Networks {
		if network.Socket != "" || network.Lima != "" || network.VZNAT {
			shared = append(shared, "a network of its own")
		}
	}
	if len(shared) == 0 {
		return nil
	}
	return fault.New(fault.Denied, "cannot use the virtual machine %q: it shares with this machine what sandboxes must not reach: %s", one.Name, strings.Join(shared, ", ")).
		WithHint("delete that from %s and its override, then: litterbox machine recreate", filepath.Join(filepath.Dir(one.Dir), "_config", "override.yaml"))
}
