package caller

import (
	"slices"
	"strings"
)

// lasting are the variables that stay in force after the client that brought
// them is gone: the places of the account's programs, settings and session,
// and the way this machine reaches the network. None is named for a secret; a
// proxy's address can hold a password, which the proxy asks for.
//
// To add one: a line that says what needs it.
var lasting = [...]string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", // git, its helpers, toolchains
	"TMPDIR", "TZ", // temporary files of git; times in the keeper's log
	"XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", // settings
	"XDG_RUNTIME_DIR",                                                                // must not be reachable from a place without namespaces
	"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH", // as git itself finds them
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy", // upstream
	"DBUS_SESSION_BUS_ADDRESS",                                                    // the keyring that secrets are read from
	"GNUPGHOME", "PASSWORD_STORE_DIR", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", // commands that print secrets, and prompts for their password
	"SSL_CERT_FILE", "SSL_CERT_DIR", // roots by which inspected hosts are verified
	"LIMA_HOME",                                                        // where Lima has its virtual machines
	"LIBVIRT_DEFAULT_URI", "LITTERBOX_VM_EMULATED", "LITTERBOX_VM_DIR", // the libvirt with the domains of sandboxes, and how they run
	"GORACE", "GOCOVERDIR", // tests: where a program of theirs reports
}

// Lasting returns the part of an environment that a process keeps when it goes
// on without its client, and that a client over the network gets. Nothing else
// of it is needed, and it holds people's secrets.
func Lasting(env []string) []string {
	kept := []string{}
	for _, entry := range env {
		if name, _, ok := strings.Cut(entry, "="); ok && slices.Contains(lasting[:], name) {
			kept = append(kept, entry)
		}
	}
	return kept
}
