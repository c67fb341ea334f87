package engine

import (
	"bytes"
	"context"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/agents"
	"github.com/litterbox-sandbox/litterbox/internal/egress"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/profile"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// readied is what a client finds in a sandbox that was made ready for it.
type readied struct {
	program   string // inside
	env       []string
	exclusive bool   // the repository's settings deny a client outside its own tools
	settings  string // what those settings are without that
}

// readyClient gives a sandbox what a client needs: the network's rules, the
// program, and the files without which it would ask.
func (e *Engine) readyClient(ctx context.Context, p *place, client profile.Profile, task AgentTask) (readied, error) {
	var ready readied
	caller := callerOf(ctx)
	if _, err := haveSecrets(ctx, p.config.Secrets, client, task.Secrets); err != nil {
		return ready, err
	}
	rules := runRules(client, p.config.Secrets)
	for _, variable := range client.Passed {
		value := caller.Get(variable)
		if value == "" {
			continue
		}
		ready.env = append(ready.env, variable+"="+value)
		if host := hostOf(value); host != "" {
			rules = append(rules, host)
		}
	}
	if p.driver.Traits().ShowsFiles() { // elsewhere neither keys nor logins go in
		has := func(variable string) bool {
			isGiven := slices.ContainsFunc(task.Env, func(pair string) bool { return strings.HasPrefix(pair, variable+"=") })
			return isGiven || caller.Get(variable) != "" || p.hasSecret(variable)
		}
		rules = append(rules, providerRules(client, has, loginsOnHost(caller, client.Name))...)
	}
	if task.Packages {
		rules = append(rules, packagePresets(p.record.Repository)...)
	}
	if err := e.admit(ctx, p, rules); err != nil {
		return ready, err
	}
	bound, err := p.bindKeys(ctx, client, slices.Concat(ready.env, task.Env))
	if err != nil {
		return ready, err
	}
	ready.env = append(ready.env, bound...)
	stream, err := e.running(ctx, p, task.AllowDegraded)
	if err != nil {
		return ready, err
	}
	if err := stream.Close(); err != nil {
		return ready, err
	}
	if ready.program, err = e.clientProgram(ctx, p, client); err != nil {
		return ready, err
	}
	given := slices.Concat(ready.env, task.Env)
	keys := p.hasKey(ctx, client, given)
	login, err := e.bindLogins(ctx, p, client, keys)
	if err != nil {
		return ready, err
	}
	if !login && !keys {
		p.noteLogin(ctx, client)
	}
	found := agents.Exclusively(p.record.Repository, client.Name)
	ready.exclusive, ready.settings = found.Exclusive, found.Rest
	if found.Denies && client.Bound {
		return ready, fault.New(fault.Conflict, "cannot run %s in sandbox %q: its settings in this repository deny it its own tools, here and inside", client.Title, p.record.Name).
			WithHint("litterbox agent uninstall %s --scope project", client.Name)
	}
	if err := e.bringOwn(ctx, p, client, task.Settings); err != nil {
		return ready, err
	}
	return ready, e.putClientFiles(ctx, p, client, login, given)
}

// hostOf is the host of an address as a rule has it; empty where a value is
// none.
func hostOf(value string) string {
	address, err := url.Parse(value)
	if err != nil || address.Hostname() == "" || address.Scheme != "https" && address.Scheme != "http" {
		return ""
	}
	port := address.Port()
	if port == "" {
		return address.Hostname()
	}
	return net.JoinHostPort(address.Hostname(), port)
}

// admit adds those rules to the sandbox's policy that are not in force yet. No human
// typed them: their entry in the audit log says what they are for.
func (e *Engine) admit(ctx context.Context, p *place, rules []string) (err error) {
	policy, err := e.policy(p)
	if err != nil || len(rules) == 0 || policy.Default == egress.Allow {
		return err
	}
	missing, err := missingRules(ctx, policy, rules)
	if err != nil || len(missing) == 0 {
		return err
	}
	who := Actor{Via: "cli"}
	if open := openCall(ctx); open != nil {
		who = open.actor()
	}
	ctx, call, err := e.Begin(apart(ctx), who, Action{Name: "allow", found: p, Arguments: map[string]any{"rules": missing, "for": "agent run"}})
	if err != nil {
		return err
	}
	defer func() { err = call.end("", nil, err) }()
	if _, err := e.ChangePolicy(ctx, PolicyRequest{Dir: p.record.Repository, Name: p.record.Name, Rules: missing}); err != nil {
		return err
	}
	p.note("it may reach " + strings.Join(missing, ", ") + ": litterbox network " + p.record.Name)
	return nil
}

// missingRules are the rules that the policy does not have, or not all that they
// stand for.
func missingRules(ctx context.Context, policy *egress.Policy, texts []string) ([]string, error) {
	wanted, err := parseRules(texts)
	if err != nil {
		return nil, err
	}
	var missing []string
	for i, rule := range wanted {
		probe, err := expand(ctx, &egress.Policy{Allow: []egress.Rule{rule}})
		if err != nil {
			return nil, err
		}
		lacks := func(rule egress.Rule) bool {
			return !slices.ContainsFunc(policy.Allow, func(known egress.Rule) bool { return known.String() == rule.String() })
		}
		if slices.ContainsFunc(probe.Allow, lacks) && !slices.Contains(missing, texts[i]) {
			missing = append(missing, texts[i])
		}
	}
	return missing, nil
}

// lockFiles say which package managers a repository uses.
//
// To add one: a line here, and a preset in egress/preset.
var lockFiles = []struct{ file, preset string }{
	{"package-lock.json", "preset:npm"}, {"npm-shrinkwrap.json", "preset:npm"}, {"pnpm-lock.yaml", "preset:npm"},
	{"yarn.lock", "preset:npm"}, {"bun.lock", "preset:npm"}, {"bun.lockb", "preset:npm"},
	{"go.mod", "preset:go"}, {"Cargo.lock", "preset:cargo"}, {"Cargo.toml", "preset:cargo"},
	{"requirements.txt", "preset:pip"}, {"poetry.lock", "preset:pip"}, {"uv.lock", "preset:pip"}, {"Pipfile.lock", "preset:pip"}, {"pyproject.toml", "preset:pip"},
}

// packagePresets are those of the package managers that a checkout's files name.
func packagePresets(top string) []string {
	var presets []string
	for _, lock := range lockFiles {
		if _, err := os.Lstat(filepath.Join(top, lock.file)); err == nil && !slices.Contains(presets, lock.preset) {
			presets = append(presets, lock.preset)
		}
	}
	return presets
}

// PackagePresets are the network presets of the package managers that the
// repository's files name.
func (e *Engine) PackagePresets(ctx context.Context, dir string) ([]string, error) {
	top, err := checkout(ctx, dir)
	if err != nil {
		return nil, err
	}
	return packagePresets(top), nil
}

// inside runs a small command in the sandbox and gives what it prints. It
// leaves no trace.
func (p *place) inside(ctx context.Context, script string, args ...string) (string, int, error) {
	stream, err := p.dial(ctx)
	if err != nil {
		return "", 0, err
	}
	defer stream.Close()
	command := wire.Exec{Argv: [][]byte{[]byte("sh"), []byte("-c"), []byte(script), []byte("sh")}}
	for _, argument := range args {
		command.Argv = append(command.Argv, []byte(argument))
	}
	out := &limited{most: 64 << 10}
	exit, err := wire.Run(ctx, stream, command, wire.Streams{Stdin: strings.NewReader(""), Stdout: out, Stderr: out})
	return strings.TrimSpace(out.String()), exit.Code, err
}

// limited keeps the beginning of what is written.
type limited struct {
	bytes.Buffer
	most int
}

func (l *limited) Write(data []byte) (int, error) {
	if room := l.most - l.Len(); room > 0 {
		l.Buffer.Write(data[:min(room, len(data))])
	}
	return len(data), nil
}

// clientProgram finds the client inside: the one that the host lends, else the
// one installed for all sandboxes.
func (e *Engine) clientProgram(ctx context.Context, p *place, client profile.Profile) (string, error) {
	const search = `for name; do found=$(command -v -- "$name") && [ -x "$found" ] && { printf %s "$found"; exit 0; }; done; exit 1`
	found, code, err := p.inside(ctx, search, client.Programs...)
	if err != nil {
		return "", err
	}
	if code == 0 && found != "" {
		return found, nil
	}
	if len(client.Install) > 0 {
		out, code, err := p.inside(ctx, `"$@"`, client.Install...)
		if ctx.Err() != nil {
			return "", fault.New(fault.Canceled, "canceled: the install command of %s was ended", client.Title)
		}
		if err != nil {
			return "", err
		}
		if found, again, err := p.inside(ctx, search, client.Programs...); err == nil && again == 0 && found != "" {
			return found, nil
		}
		said := lastLines(out, 3)
		if said != "" {
			said = "; it said: " + said
		}
		return "", fault.New(fault.NotFound, "cannot find %s after its install command, which exited with %d%s", client.Programs[0], code, said).
			WithHint("litterbox exec %s -- sh -c 'command -v %s'", p.record.Name, client.Programs[0])
	}
	if client.Package == "" {
		return "", fault.New(fault.NotFound, "cannot find %s in sandbox %q", client.Programs[0], p.record.Name).
			WithHint("litterbox exec %s -- sh -c 'command -v %s'", p.record.Name, client.Programs[0])
	}
	return e.sharedClient(ctx, p, client)
}

func lastLines(text string, most int) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "; ")
}

// putClientFiles writes the files that a client looks for into the sandbox's
// own home.
func (e *Engine) putClientFiles(ctx context.Context, p *place, client profile.Profile, login bool, env []string) error {
	if client.Files == nil {
		return nil
	}
	for _, file := range client.Files(profile.Place{Project: p.record.Repository, KeyTail: p.keyTail(ctx, client, env), Login: login}) {
		old, err := p.readHome(ctx, file.Path)
		if err != nil {
			return err
		}
		content, err := mergeSettings(file.Path, old, file.Merge, file.Force)
		if err != nil {
			p.note("~/" + file.Path + " inside cannot be read and stays as it is")
			continue
		}
		if bytes.Equal(content, old) {
			continue
		}
		if err := p.writeHome(ctx, file.Path, content); err != nil {
			return err
		}
	}
	return nil
}

// largestSettings bounds a client's file that is read from inside.
const largestSettings = 4 << 20

// readHome reads a file below HOME inside; nil when there is none.
func (p *place) readHome(ctx context.Context, path string) ([]byte, error) {
	stream, err := p.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	content := &limited{most: largestSettings}
	_, err = wire.Read(ctx, stream, []byte("~/"+path), 0, largestSettings, content)
	if fault.KindOf(err) == fault.NotFound {
		return nil, nil
	}
	return content.Bytes(), err
}

// writeHome writes a file below HOME inside, for its owner alone.
func (p *place) writeHome(ctx context.Context, path string, content []byte) error {
	const private = 0o600
	return p.writeHomeAs(ctx, path, content, private)
}

func (p *place) writeHomeAs(ctx context.Context, path string, content []byte, mode uint32) error {
	stream, err := p.dial(ctx)
	if err != nil {
		return err
	}
	defer stream.Close()
	_, err = wire.Write(ctx, stream, []byte("~/"+path), mode, bytes.NewReader(content))
	return err
}
