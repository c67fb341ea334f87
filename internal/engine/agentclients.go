package engine

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/profile"
	"github.com/litterbox-sandbox/litterbox/internal/secret"
	"github.com/litterbox-sandbox/litterbox/internal/secret/source"
)

// AgentLogin reports whether a client is ready to run inside.
type AgentLogin struct {
	Version string `json:"version,omitempty"`
	At      string `json:"at,omitempty"`      // the host's program; empty where it has none
	Login   string `json:"login,omitempty"`   // what logs it in inside; empty: nothing that is found
	Missing string `json:"missing,omitempty"` // what is missing, and how to mend it
	Own     bool   `json:"own,omitempty"`     // it is in [agents] of the configuration

	lacks, mend string // Missing in its parts
}

// AgentLogins looks at the clients that agent run knows in a directory, by name.
// It runs none, and reads no value of a secret. With an error it has those that are
// built in.
func (e *Engine) AgentLogins(ctx context.Context, dir string) (map[string]AgentLogin, error) {
	who := callerOf(ctx)
	found := map[string]AgentLogin{}
	for _, client := range profile.All() {
		ready := AgentLogin{Version: clientVersion(who, client), At: clientPath(who, client)}
		for _, key := range client.Keys {
			if who.Get(key.Variable) != "" && ready.Login == "" {
				ready.Login = key.Variable
			}
		}
		if files := loginsOnHost(who, client.Name); ready.Login == "" && len(files) > 0 {
			ready.Login = files[0].where(who)
		}
		if ready.Login == "" {
			ready.lacks, ready.mend = "no login", client.Programs[0]+"    # and log in there, or export "+client.Keys[0].Variable+"=…"
			ready.Missing = "no login: " + loginMends(client)
		}
		found[client.Name] = ready
	}
	counts, waiting, err := e.configured(ctx, dir)
	if err != nil {
		return found, err
	}
	reader, err := sources(who)
	if err != nil {
		return found, err
	}
	for _, one := range counts.Agents {
		ready := ownLogin(who, reader, one, counts, waiting)
		if ready.lacks != "" {
			ready.Missing = ready.lacks + ": " + ready.mend
		}
		found[one.Name] = ready
	}
	return found, nil
}

// loginMends says how a client that is built in gets a login.
func loginMends(client profile.Profile) string {
	return "log in with " + client.Programs[0] + ", or export " + client.Keys[0].Variable + "=…"
}

// ownLogin looks at a client of the human's own.
func ownLogin(who *caller.Caller, reader source.Reader, agent config.Agent, counts config.Config, waiting []secret.Spec) AgentLogin {
	client := profile.Own(agent.Name, agent.Command, agent.Install, agent.Allow, agent.Secrets)
	ready := AgentLogin{Own: true, Version: clientVersion(who, client), At: clientPath(who, client)}
	var logins []string
	for _, name := range agent.Secrets {
		is := func(spec secret.Spec) bool { return spec.Name == name }
		i := slices.IndexFunc(counts.Secrets, is)
		switch {
		case i < 0 && slices.ContainsFunc(waiting, is):
			ready.lacks, ready.mend = "the secret "+name+" waits for trust", "litterbox trust"
			return ready
		case i < 0:
			ready.lacks, ready.mend = "there is no [secrets."+name+"]", "litterbox secrets set NAME    # and name it in [secrets."+name+"]"
			return ready
		}
		if lacks, mend := unset(reader, counts.Secrets[i]); lacks != "" {
			ready.lacks, ready.mend = lacks, mend
			return ready
		}
		logins = append(logins, name)
	}
	ready.Login = strings.Join(logins, ", ")
	program := client.Programs[0]
	elsewhere := len(agent.Install) > 0 || counts.Container.BaseImage != "" || // an image may have it, or the repository
		strings.Contains(program, "/") && !filepath.IsAbs(program)
	if ready.At == "" && !elsewhere {
		ready.lacks, ready.mend = program+" is not installed", "install it, or set install in [agents."+agent.Name+"]"
	}
	return ready
}

// unset says why a secret has no value, and the command that mends it, as far as
// it can be seen without reading the value. Both are empty where nothing speaks
// against a value.
func unset(reader source.Reader, spec secret.Spec) (lacks, mend string) {
	from := spec.From
	switch from.Kind {
	case secret.Env:
		if value, set := reader.Lookup(from.Name); !set || len(value) == 0 {
			return "the variable " + from.Name + " is not set", "export " + from.Name + "=…"
		}
	case secret.File:
		path := from.Name
		if below, ok := strings.CutPrefix(path, "~/"); ok {
			path = filepath.Join(reader.Home, below)
		}
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			return "the secret " + spec.Name + " has no value", "write it to " + from.Name
		}
	case secret.Command:
		if _, err := exec.LookPath(from.Command[0]); err != nil {
			return "the secret " + spec.Name + " has no value", "install " + from.Command[0]
		}
	case secret.Keyring, secret.Age:
		entries, err := reader.Vault.List()
		if err != nil {
			return err.Error(), "litterbox secrets list"
		}
		for _, entry := range entries {
			if entry.Kind == from.Kind && entry.Name == from.Name {
				return "", ""
			}
		}
		return "the secret " + spec.Name + " has no value", "litterbox secrets set " + spec.Name
	}
	return "", ""
}

// clientChecks says for each client where it is installed, what logs it in
// inside, and how to mend what is missing.
func (e *Engine) clientChecks(ctx context.Context, dir string) []Check {
	logins, err := e.AgentLogins(ctx, dir)
	var checks []Check
	if err != nil {
		checks = append(checks, Check{Name: "configuration", Found: err.Error(), Mend: fault.HintOf(err)})
	}
	names := profile.Names()
	for name := range logins {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names[len(profile.All()):])
	for _, name := range names {
		login := logins[name]
		check := Check{Name: name, OK: login.lacks == "", Found: "not installed; agent run has npm install it"}
		switch {
		case login.At != "" && login.Version != "":
			check.Found = login.Version + " at " + login.At
		case login.At != "":
			check.Found = login.At
		case login.Own:
			check.Found = "not installed here"
		}
		switch {
		case login.Login != "":
			check.Found += ", logged in by " + login.Login
		case !login.Own:
			check.Found += ", not logged in"
		}
		if !check.OK && (login.Own || login.At != "") {
			check.Mend = login.mend
		}
		if login.Own && login.lacks != "" && login.Login == "" {
			check.Found += ", " + login.lacks
		}
		checks = append(checks, check)
	}
	return checks
}

// clientPath is where the host's client is; empty where it is not.
func clientPath(who *caller.Caller, client profile.Profile) string {
	for _, dir := range programDirs(who, client) {
		for _, program := range client.Programs {
			path := program
			if !filepath.IsAbs(path) {
				path = filepath.Join(dir, program)
			}
			if info, err := os.Stat(path); filepath.IsAbs(path) && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return path
			}
		}
	}
	return ""
}

// programDirs are the directories of $PATH; a program with a path of its own is
// in none of them.
func programDirs(who *caller.Caller, client profile.Profile) []string {
	if strings.Contains(client.Programs[0], "/") {
		return []string{""}
	}
	return filepath.SplitList(who.Get("PATH"))
}

// clientVersion is the version of the host's client, as its package or the name
// of its directory says; empty where neither does.
func clientVersion(who *caller.Caller, client profile.Profile) string {
	path := clientPath(who, client)
	if path == "" {
		return ""
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return ""
	}
	if below := filepath.Base(filepath.Dir(target)); below == "versions" {
		return filepath.Base(target)
	}
	const levels = 4
	program := target
	for range levels {
		target = filepath.Dir(target)
		content, err := os.ReadFile(filepath.Join(target, "package.json"))
		var manifest struct {
			Name, Version string
			Bin           any
		}
		if err != nil || json.Unmarshal(content, &manifest) != nil {
			continue
		}
		below, _ := filepath.Rel(target, program) // it is below
		if client.Package != "" && strings.HasPrefix(manifest.Name, client.Package) || client.Package == "" && hasProgram(manifest.Bin, below) {
			return manifest.Version
		}
	}
	return ""
}

// hasProgram reports whether a package's bin names a program.
func hasProgram(bin any, path string) bool {
	switch bin := bin.(type) {
	case string:
		return filepath.Clean(bin) == path
	case map[string]any:
		for _, one := range bin {
			if hasProgram(one, path) {
				return true
			}
		}
	}
	return false
}
