package engine

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/login"
	"github.com/litterbox-sandbox/litterbox/internal/profile"
	"github.com/litterbox-sandbox/litterbox/internal/secret"
)

// bindKeys puts placeholders inside for the keys that the caller's environment
// holds for a client. The keeper puts the values in on the way to the hosts that
// the profile names, and to those of addresses that the caller has given the
// client; they are bound for as long as the sandbox lives. given is what the
// client's environment has already. It returns the variables to add.
func (p *place) bindKeys(ctx context.Context, client profile.Profile, given []string) (env []string, err error) {
	if !p.driver.Traits().ShowsFiles() || len(client.Keys) == 0 {
		return nil, nil // nothing is read there
	}
	unlock, err := p.store.Lock(ctx, p.record.ID, "lease") // as a start, which writes the same
	if err != nil {
		return nil, err
	}
	defer unlock()
	all, err := keeper.ReadSecrets(p.dir)
	if err != nil {
		return nil, err
	}
	reader, err := sources(callerOf(ctx))
	if err != nil {
		return nil, err
	}
	all.Home, all.Vault = reader.Home, reader.Vault.Dir
	for _, key := range client.Keys {
		isGiven := slices.ContainsFunc(given, func(pair string) bool { return strings.HasPrefix(pair, key.Variable+"=") })
		if isGiven || p.hasSecret(key.Variable) {
			continue
		}
		spec, err := keySpec(key, client, callerOf(ctx))
		if err != nil {
			return nil, err
		}
		binding := secret.Binding{Spec: spec, Placeholder: all.Placeholder(spec)}
		if callerOf(ctx).Get(key.Variable) != "" {
			if binding.Placeholder, err = p.placeholder(ctx, reader, spec, binding.Placeholder); err != nil {
				p.note(key.Variable + " stays outside, without a placeholder inside: " + err.Error())
				continue
			}
			all.Keys = append(slices.DeleteFunc(all.Keys, func(one secret.Spec) bool { return one.Name == spec.Name }), spec)
			all.Bindings = append(slices.DeleteFunc(all.Bindings, func(one secret.Binding) bool { return one.Name == spec.Name }), binding)
			p.note("a placeholder stands for " + key.Variable + " inside; its value goes to " + strings.Join(hostsOf(spec), ", ") + " alone")
		}
		if binding.Placeholder != "" {
			env = append(env, key.Variable+"="+binding.Placeholder)
		}
	}
	if len(env) == 0 {
		return nil, nil
	}
	return env, p.writeSecrets(all)
}

// haveSecrets fails where a secret that a client requires has no value. It reads
// none of those in known, and returns the names of those that it has read: a
// source may ask the human.
func haveSecrets(ctx context.Context, specs []secret.Spec, client profile.Profile, known []string) (read []string, err error) {
	if len(client.Secrets) == 0 {
		return nil, nil
	}
	reader, err := sources(callerOf(ctx))
	if err != nil {
		return nil, err
	}
	for _, name := range client.Secrets {
		i := slices.IndexFunc(specs, func(one secret.Spec) bool { return one.Name == name })
		if i < 0 {
			return nil, fault.New(fault.Invalid, "cannot run %s: it needs the secret %s, and there is no [secrets.%s]", client.Title, name, name).WithHint("litterbox secrets list")
		}
		if slices.Contains(known, name) {
			continue
		}
		value, err := reader.Read(ctx, specs[i].From)
		if err == nil {
			err = secret.CheckValue(secret.TrimValue(value))
		}
		clear(value)
		if err != nil {
			return nil, fault.Wrap("", err, "cannot run %s: the secret %s has no value", client.Title, name)
		}
		read = append(read, name)
	}
	return read, nil
}

// keySpec is a client's key as a secret.
func keySpec(key profile.Key, client profile.Profile, who *caller.Caller) (secret.Spec, error) {
	spec := secret.Spec{Name: key.Variable, From: secret.Source{Kind: secret.Env, Name: key.Variable}, In: []secret.Place{secret.Header}}
	names := slices.Clone(key.Hosts)
	for _, variable := range client.Passed {
		if address, err := url.Parse(who.Get(variable)); err == nil && address.Host != "" {
			names = append(names, address.Scheme+"://"+address.Host)
		}
	}
	for _, name := range names {
		host, err := secret.ParseHost(name)
		if err != nil {
			return secret.Spec{}, err
		}
		spec.Hosts = append(spec.Hosts, host)
	}
	return spec, nil
}

// hasKey reports whether the client has a key inside.
func (p *place) hasKey(ctx context.Context, client profile.Profile, env []string) bool {
	return slices.ContainsFunc(client.Keys, func(key profile.Key) bool { return p.keyInside(ctx, key.Variable, env) != "" })
}

// noteLogin says what would log in a client that has neither a key nor a login of
// the host's inside, unless it has logged in there by itself.
func (p *place) noteLogin(ctx context.Context, client profile.Profile) {
	if len(client.Keys) == 0 || p.loggedInInside(ctx, client) {
		return
	}
	for _, key := range client.Keys {
		if callerOf(ctx).Get(key.Variable) != "" {
			p.note(key.Variable + " is set here and not inside: -e " + key.Variable + " passes it on")
			return
		}
	}
	p.note("no login for " + client.Title + ": " + loginMends(client))
}

// loggedInInside reports whether the client has logged in inside.
func (p *place) loggedInInside(ctx context.Context, client profile.Profile) bool {
	return slices.ContainsFunc(login.For(client.Name), func(one login.Login) bool {
		content, err := p.readHome(ctx, one.File)
		if err != nil {
			return false // the note then says what is known
		}
		document, err := login.Parse(content)
		if err != nil {
			return false
		}
		_, err = one.Values(document)
		return err == nil
	})
}

// keyInside is the value of a variable for a command inside.
func (p *place) keyInside(ctx context.Context, variable string, env []string) string {
	for _, pair := range slices.Backward(env) {
		if given, ok := strings.CutPrefix(pair, variable+"="); ok {
			return given
		}
	}
	value, code, err := p.inside(ctx, `printenv "$1"`, variable)
	if err != nil || code != 0 {
		return ""
	}
	return value
}

// keyTail is the end of the placeholder for the client's key inside: Claude Code
// asks about a key that it has not seen, and remembers its end.
func (p *place) keyTail(ctx context.Context, client profile.Profile, env []string) string {
	const seen = 20
	if len(client.Keys) == 0 {
		return ""
	}
	value := p.keyInside(ctx, client.Keys[0].Variable, env)
	return value[max(0, len(value)-seen):]
}
