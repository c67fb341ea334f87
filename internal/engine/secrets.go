package engine

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
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

// vaultOf is the vault for a human's values: beside the configuration.
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

// addSecrets gives a place the placeholders of its secrets, and records them for
// its keeper: those of the configuration, and the keys of agents that have worked
// there. A secret without a value is left out, with a note: there is nothing to
// stand in for.
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
		known := before.Placeholder(one) // files inside may contain it
		binding.Placeholder, err = p.placeholder(ctx, reader, one, known)
		if err != nil && n >= len(p.config.Secrets) {
			binding.Placeholder, err = known, nil // the next run of the agent has the key
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

// noteUngiven says that a place has no secrets: its programs do not trust the
// authority with which they are put in. Nor does it have the human's ssh-agent.
func (p *place) noteUngiven() {
	if p.config.SSHAgent.Enabled {
		p.note("ssh-agent.enabled: your ssh-agent stays out: nothing of this machine is mounted there")
	}
	if len(p.config.Secrets) > 0 {
		p.note("the secrets of the configuration stay out: nothing of this machine is mounted there, so its programs trust no authority of its own")
	}
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

// placeholder makes the stand-in for a value, or keeps an earlier one of the same
// form.
func (p *place) placeholder(ctx context.Context, reader source.Reader, one secret.Spec, known string) (string, error) {
	value, err := reader.Read(ctx, one.From)
	defer clear(value)
	if err != nil {
		return "", err
	}
	if err := know(ctx, p.store, reader.Vault, value); err != nil {
		p.note(err.Error()) // it can be used all the same
	}
	made, err := secret.Placeholder(secret.TrimValue(value))
	if err == nil && known != "" && len(known) == len(made) {
		made = known
	}
	return made, err
}

// lend gives the keeper the caller's variables that secrets are read from. They are
// in no file and no argument, so each keeper must be lent them. The newest caller's
// count.
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
