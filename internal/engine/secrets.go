package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
	"github.com/litterbox-sandbox/litterbox/internal/secret"
	"github.com/litterbox-sandbox/litterbox/internal/secret/source"
	"github.com/litterbox-sandbox/litterbox/internal/secret/vault"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// secretsAsked says which value a configuration sends to which host.
func secretsAsked(specs []secret.Spec) string {
	var all []string
	for _, spec := range specs {
		all = append(all, spec.From.String()+" as "+spec.Name+" to "+strings.Join(hostsOf(spec), ", "))
	}
	return strings.Join(all, "; ")
}

func hostsOf(spec secret.Spec) []string {
	hosts := make([]string, len(spec.Hosts))
	for n, host := range spec.Hosts {
		hosts[n] = host.String()
	}
	return hosts
}

// vaultOf is where values of a human are stored: beside the configuration.
func vaultOf(who *caller.Caller) (vault.Vault, error) {
	file, err := config.UserFile(who)
	if err != nil {
		return vault.Vault{}, err
	}
	return vault.Vault{Dir: filepath.Join(filepath.Dir(file), "secrets")}, nil
}

// sources reads values for a human.
func sources(who *caller.Caller) (source.Reader, error) {
	stored, err := vaultOf(who)
	return source.Reader{Home: who.Home, Vault: stored, Env: caller.Lasting(who.Env), Lookup: func(name string) ([]byte, bool) {
		value, set := who.Lookup(name)
		return []byte(value), set
	}}, err
}

// addSecrets gives a place the placeholders of its secrets, and writes down for
// its keeper what they are: those of the configuration, and the keys of agents
// that have worked there. A secret without a value is left out, with a note:
// there is nothing to stand for.
func (p *place) addSecrets(ctx context.Context, spec *driver.Spec) error {
	before, err := keeper.ReadSecrets(p.dir)
	if err != nil {
		before = keeper.Secrets{} // other placeholders do as well
	}
	keys := slices.DeleteFunc(before.Keys, func(key secret.Spec) bool { return p.hasSecret(key.Name) })
	if len(p.config.Secrets) == 0 && len(keys) == 0 {
		if err := os.Remove(p.path(keeper.SecretsFile)); err != nil && !os.IsNotExist(err) {
			return fault.Wrap(fault.Unavailable, err, "cannot remove the secrets of sandbox %q", p.record.Name)
		}
		return nil
	}
	reader, err := sources(callerOf(ctx))
	if err != nil {
		return err
	}
	all := keeper.Secrets{Home: reader.Home, Vault: reader.Vault.Dir, Keys: keys}
	for n, one := range slices.Concat(p.config.Secrets, keys) {
		binding := secret.Binding{Spec: one}
		known := before.Placeholder(one) // it may stand in files inside
		binding.Placeholder, err = placeholder(ctx, reader, one, known)
		if err != nil && n >= len(p.config.Secrets) {
			binding.Placeholder, err = known, nil // who runs the agent next has the key
		}
		if err != nil {
			note := "secret " + one.Name + " has no value: " + err.Error()
			if hint := fault.HintOf(err); hint != "" {
				note += "; " + hint
			}
			p.note(note)
		} else if binding.Placeholder != "" {
			spec.Env[one.Name] = binding.Placeholder
		}
		all.Bindings = append(all.Bindings, binding)
	}
	return p.writeSecrets(all)
}

// hasSecret reports whether the configuration has a secret of that name.
func (p *place) hasSecret(name string) bool {
	return slices.ContainsFunc(p.config.Secrets, func(one secret.Spec) bool { return one.Name == name })
}

// writeSecrets says to the keeper which secrets a sandbox has.
func (p *place) writeSecrets(all keeper.Secrets) error {
	data, err := seal.Encode(all)
	temporary := p.path("." + keeper.SecretsFile)
	if err == nil {
		err = os.WriteFile(temporary, data, 0o600)
	}
	if err == nil {
		err = os.Rename(temporary, p.path(keeper.SecretsFile))
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot write which secrets sandbox %q has", p.record.Name)
	}
	return nil
}

// placeholder makes what stands for a value, or keeps what has stood for one of
// the same form.
func placeholder(ctx context.Context, reader source.Reader, one secret.Spec, known string) (string, error) {
	value, err := reader.Read(ctx, one.From)
	defer clear(value)
	if err != nil {
		return "", err
	}
	made, err := secret.Placeholder(secret.TrimValue(value))
	if err == nil && known != "" && len(known) == len(made) {
		made = known
	}
	return made, err
}

// lend gives the keeper the variables of the caller that secrets are read from.
// They are in no file and no argument, and each keeper has to be lent them. The
// newest caller's count.
func (e *Engine) lend(ctx context.Context, p *place) error {
	all, err := keeper.ReadSecrets(p.dir)
	if err != nil || len(all.Env()) == 0 {
		return nil // the keeper says what is wrong with its secrets
	}
	given := keeper.Lent{Values: map[string][]byte{}}
	for _, name := range all.Env() {
		if value, set := callerOf(ctx).Lookup(name); set && value != "" {
			given.Values[name] = []byte(value)
		}
	}
	if len(given.Values) == 0 {
		return nil
	}
	stream, err := p.dial(ctx)
	if err != nil {
		return err
	}
	defer stream.Close()
	frames := wire.NewReader(stream)
	err = wire.WriteJSON(stream, wire.KindRequest, wire.Request{Version: wire.Version, Op: keeper.OpLend})
	kind := wire.Kind(0)
	if err == nil {
		kind, _, err = frames.Next()
	}
	if err == nil && kind == wire.KindStarted {
		if err = wire.WriteJSON(stream, wire.KindStdin, given); err == nil {
			_, _, err = frames.Next()
		}
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot give the keeper of sandbox %q the variables of its secrets", p.record.Name)
	}
	return nil // a keeper of another version has none of these secrets
}

// Secret is a secret as listings show it: never with its value.
type Secret struct {
	Name    string   `json:"name"` // of the variable; empty for a stored value that nothing names
	From    string   `json:"from"`
	Hosts   []string `json:"hosts"`
	In      []string `json:"in"`
	Counts  bool     `json:"counts"`           // false: it waits for litterbox trust
	Stored  string   `json:"stored,omitempty"` // when litterbox secrets set has stored its value
	Problem string   `json:"problem,omitempty"`
}

// SecretRequest stores, removes or tests a value.
type SecretRequest struct {
	Dir   string
	Name  string // a variable of the configuration, or the name of an entry
	Value []byte // wiped by Set
	Age   bool   // in a file, also where a keyring answers
}

// configured are the secrets of the human and the repository, and which of them
// wait for trust. Outside of a repository the human's own count.
func (e *Engine) configured(ctx context.Context, dir string) (specs []secret.Spec, waiting []secret.Spec, policy config.Network, err error) {
	user, err := config.LoadUser(callerOf(ctx))
	if err != nil {
		return nil, nil, policy, err
	}
	repo, err := git.Open(ctx, dir)
	if err != nil {
		return user.Secrets, nil, user.Network, nil // nothing but the human's own is there
	}
	found, err := e.settings(ctx, repo.Top, repo.CommonDir)
	if err != nil {
		return nil, nil, policy, err
	}
	if slices.Contains(found.withheld, "secrets") {
		theirs, err := config.Load(repo.Top)
		if err != nil {
			return nil, nil, policy, err
		}
		waiting = theirs.Secrets
	}
	return found.config.Secrets, waiting, found.config.Network, nil
}

// Secrets lists what is configured, and what is stored beside that.
func (e *Engine) Secrets(ctx context.Context, dir string) ([]Secret, error) {
	specs, waiting, _, err := e.configured(ctx, dir)
	if err != nil {
		return nil, err
	}
	stored, err := vaultOf(callerOf(ctx))
	if err != nil {
		return nil, err
	}
	entries, err := stored.List()
	if err != nil {
		return nil, err
	}
	var all []Secret
	used := map[string]bool{}
	add := func(spec secret.Spec, counts bool) {
		one := Secret{Name: spec.Name, From: spec.From.String(), Hosts: hostsOf(spec), In: places(spec), Counts: counts}
		for _, entry := range entries {
			if entry.Kind == spec.From.Kind && entry.Name == spec.From.Name {
				one.Stored = entry.Set.Format("2006-01-02")
				used[one.From] = true
			}
		}
		all = append(all, one)
	}
	for _, spec := range specs {
		add(spec, true)
	}
	for _, spec := range waiting {
		add(spec, false)
	}
	for _, entry := range entries {
		if from := string(entry.Kind) + ":" + entry.Name; !used[from] {
			all = append(all, Secret{From: from, Hosts: []string{}, In: []string{}, Counts: true, Stored: entry.Set.Format("2006-01-02")})
		}
	}
	return all, nil
}

func places(spec secret.Spec) []string {
	in := make([]string, len(spec.In))
	for n, place := range spec.In {
		in[n] = string(place)
	}
	return in
}

// entryOf is the stored entry that a name means: the source of the configured
// secret of that name, or an entry of that name itself.
func (e *Engine) entryOf(ctx context.Context, request SecretRequest) (kind secret.Kind, name string, err error) {
	specs, waiting, _, err := e.configured(ctx, request.Dir)
	if err != nil {
		return "", "", err
	}
	for _, spec := range slices.Concat(specs, waiting) {
		if spec.Name != request.Name {
			continue
		}
		if kind = spec.From.Kind; kind != secret.Keyring && kind != secret.Age {
			return "", "", fault.New(fault.Invalid, "cannot store a value for %s: it comes from %s", spec.Name, spec.From)
		}
		if request.Age && kind != secret.Age {
			return "", "", fault.New(fault.Invalid, "cannot store the value of %s in a file: the configuration names %s", spec.Name, spec.From).
				WithHint(`write from = "age:%s"`, spec.From.Name)
		}
		return kind, spec.From.Name, nil
	}
	if !secret.ValidEntry(request.Name) {
		return "", "", fault.New(fault.Invalid, "cannot use %q as the name of a secret: it has letters, digits, dashes, dots and underscores", request.Name)
	}
	return "", request.Name, nil
}

// SetSecret stores a value and says where, as a source.
func (e *Engine) SetSecret(ctx context.Context, request SecretRequest) (from string, err error) {
	defer clear(request.Value)
	kind, name, err := e.entryOf(ctx, request)
	if err != nil {
		return "", err
	}
	stored, err := vaultOf(callerOf(ctx))
	if err != nil {
		return "", err
	}
	if request.Age {
		kind = secret.Age
	}
	if kind == "" {
		kind = stored.Place(ctx)
	}
	from = string(kind) + ":" + name
	ctx, call, err := e.record(ctx, "secrets set", request.Dir, "", map[string]any{"from": from})
	if err != nil {
		return "", err
	}
	defer func() { err = call.end("", nil, err) }()
	return from, stored.Set(ctx, kind, name, secret.TrimValue(request.Value))
}

// RemoveSecret forgets a stored value and says which.
func (e *Engine) RemoveSecret(ctx context.Context, request SecretRequest) (from string, err error) {
	kind, name, err := e.entryOf(ctx, request)
	if err != nil {
		return "", err
	}
	stored, err := vaultOf(callerOf(ctx))
	if err != nil {
		return "", err
	}
	if kind == "" {
		entries, err := stored.List()
		if err != nil {
			return "", err
		}
		for _, entry := range entries {
			if entry.Name == name && (!request.Age || entry.Kind == secret.Age) {
				kind = entry.Kind
			}
		}
		if kind == "" {
			return "", fault.New(fault.NotFound, "cannot remove the secret %q: there is none", name).WithHint("litterbox secrets list")
		}
	}
	from = string(kind) + ":" + name
	ctx, call, err := e.record(ctx, "secrets remove", request.Dir, "", map[string]any{"from": from})
	if err != nil {
		return "", err
	}
	defer func() { err = call.end("", nil, err) }()
	return from, stored.Remove(ctx, kind, name)
}

// TestSecrets reads the values of secrets, and says what keeps them from being
// used; an empty name means all.
func (e *Engine) TestSecrets(ctx context.Context, request SecretRequest) ([]Secret, error) {
	specs, waiting, network, err := e.configured(ctx, request.Dir)
	if err != nil {
		return nil, err
	}
	reader, err := sources(callerOf(ctx))
	if err != nil {
		return nil, err
	}
	policy, err := e.policyOf(ctx, config.Config{Network: network})
	if err != nil {
		return nil, err
	}
	var all []Secret
	for n, spec := range slices.Concat(specs, waiting) {
		if request.Name != "" && spec.Name != request.Name {
			continue
		}
		one := Secret{Name: spec.Name, From: spec.From.String(), Hosts: hostsOf(spec), In: places(spec), Counts: n < len(specs)}
		value, err := reader.Read(ctx, spec.From)
		if err == nil {
			err = secret.CheckValue(secret.TrimValue(value))
		}
		clear(value)
		switch {
		case err != nil:
			one.Problem = err.Error()
			if hint := fault.HintOf(err); hint != "" {
				one.Problem += "; " + hint
			}
		case !one.Counts:
			one.Problem = "it " + needsTrust
		default:
			for _, host := range spec.Hosts {
				if verdict := policy.Decide(host.Target()); !verdict.Allowed {
					one.Problem = fmt.Sprintf("no rule allows %s; litterbox allow NAME %s", host, host.Rule())
				}
			}
		}
		all = append(all, one)
	}
	if len(all) == 0 && request.Name != "" {
		return nil, fault.New(fault.NotFound, "cannot test the secret %q: no configuration names it", request.Name).WithHint("litterbox secrets list")
	}
	return all, nil
}
