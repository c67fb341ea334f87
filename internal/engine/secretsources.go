package engine

import (
	"context"
	"slices"

	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/secret"
)

// Secret is a secret as listings show it: never with its value.
type Secret struct {
	Name    string   `json:"name"` // of the variable; empty for a stored value that no configuration names
	From    string   `json:"from"`
	Hosts   []string `json:"hosts"`
	In      []string `json:"in"`
	Counts  bool     `json:"counts"`           // false: it waits for litterbox trust
	Stored  string   `json:"stored,omitempty"` // when litterbox secrets set has stored its value
	Runs    []string `json:"runs,omitempty"`   // commands that allow its hosts, where the configuration's rules do not
	Problem string   `json:"problem,omitempty"`
}

// SecretRequest stores, removes or tests a value.
type SecretRequest struct {
	Dir  string
	Name string // a variable of the configuration, or the name of an entry
	Age  bool   // in a file, also where a keyring answers
	// Read gets the value to store, once it is certain that it can be stored under
	// that name. What it returns is wiped.
	Read func(context.Context) ([]byte, error)
}

// configured is the configuration of the human and the repository, and the secrets
// that wait for trust. Outside of a repository the human's own counts.
func (e *Engine) configured(ctx context.Context, dir string) (counts config.Config, waiting []secret.Spec, err error) {
	user, err := config.LoadUser(callerOf(ctx))
	if err != nil {
		return counts, nil, err
	}
	repo, err := git.Open(ctx, dir)
	if err != nil {
		return user, nil, nil // only the human's own exists
	}
	found, err := e.settings(ctx, repo.Top, repo.CommonDir)
	if err != nil {
		return counts, nil, err
	}
	if slices.Contains(found.withheld, "secrets") {
		theirs, err := config.Load(repo.Top)
		if err != nil {
			return counts, nil, err
		}
		waiting = theirs.Secrets
	}
	return found.config, waiting, nil
}

// Secrets lists the configured secrets, and other stored values.
func (e *Engine) Secrets(ctx context.Context, dir string) ([]Secret, error) {
	counts, waiting, err := e.configured(ctx, dir)
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
	for _, spec := range counts.Secrets {
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
	counts, waiting, err := e.configured(ctx, request.Dir)
	if err != nil {
		return "", "", err
	}
	for _, spec := range slices.Concat(counts.Secrets, waiting) {
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
	kind, name, err := e.entryOf(ctx, request)
	if err != nil {
		return "", err
	}
	stored, err := vaultOf(callerOf(ctx))
	if err != nil {
		return "", err
	}
	value, err := request.Read(ctx)
	defer clear(value)
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
	if err := know(ctx, e.Store, stored, value); err != nil {
		return "", err
	}
	return from, stored.Set(ctx, kind, name, secret.TrimValue(value))
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
