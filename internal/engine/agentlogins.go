package engine

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/login"
	"github.com/litterbox-sandbox/litterbox/internal/profile"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// hostLogin is a login that the host's client keeps in a file.
type hostLogin struct {
	login.Login
	path     string
	document map[string]any
}

// where is the file as people write it.
func (l hostLogin) where(who *caller.Caller) string {
	if below, ok := strings.CutPrefix(l.path, who.Home+"/"); ok && who.Home != "" {
		return "~/" + below
	}
	return l.path
}

// loginsOnHost are the logins of a client that the host has.
func loginsOnHost(who *caller.Caller, client string) []hostLogin {
	var found []hostLogin
	for _, one := range login.For(client) {
		path := one.Path(one.File, who.Home, who.Get)
		if path == "" {
			continue
		}
		document, err := login.ReadFile(path)
		if err != nil {
			continue
		}
		if _, err := one.Values(document); err == nil {
			found = append(found, hostLogin{one, path, document})
		}
	}
	return found
}

// bindLogins makes the logins that the host's client keeps in files work inside:
// files of the same shape hold placeholders there, and the keeper puts the tokens
// in, and renews them. It reports whether there is one. A key of the environment
// counts before a login, as it does on the host.
func (e *Engine) bindLogins(ctx context.Context, p *place, client profile.Profile, keys bool) (bound bool, err error) {
	if !p.driver.Traits().ShowsFiles() || keys && !client.Several {
		return false, nil // in the first case nothing is read there
	}
	who := callerOf(ctx)
	found := loginsOnHost(who, client.Name)
	if len(found) == 0 {
		return false, nil
	}
	stored, err := vaultOf(who)
	if err != nil {
		return false, err
	}
	asked := keeper.Logins{Locks: stored.Dir}
	for _, one := range found {
		host := keeper.HostLogin{Name: one.Name, File: one.path}
		for _, path := range one.Locks {
			host.Locks = append(host.Locks, one.Path(path, who.Home, who.Get))
		}
		asked.Logins = append(asked.Logins, host)
	}
	inside, err := e.admitLogins(ctx, p, asked)
	if err != nil {
		return false, err
	}
	for _, one := range found {
		document, ok := inside.Documents[one.Name]
		if !ok {
			continue
		}
		bound = true
		p.note("the login in " + one.where(who) + " works inside; its tokens stay outside")
		if err := p.mergeHome(ctx, one.File, document); err != nil {
			return bound, err
		}
		for _, beside := range one.Beside {
			content, err := login.ReadFile(one.Path(beside.File, who.Home, who.Get))
			if err != nil {
				continue
			}
			if kept := beside.BesideInside(content); len(kept) > 0 {
				if err := p.mergeHome(ctx, beside.File, kept); err != nil {
					return bound, err
				}
			}
		}
	}
	return bound, nil
}

// mergeHome puts values into a JSON file below HOME inside. A file that is not JSON
// is replaced.
func (p *place) mergeHome(ctx context.Context, path string, values map[string]any) error {
	old, err := p.readHome(ctx, path)
	if err != nil {
		return err
	}
	content, err := mergeSettings(path, old, values, true)
	if err != nil {
		if content, err = mergeSettings(path, nil, values, true); err != nil {
			return err
		}
	}
	if string(content) == string(old) {
		return nil
	}
	return p.writeHome(ctx, path, content)
}

// admitLogins has the keeper make placeholders for logins.
func (e *Engine) admitLogins(ctx context.Context, p *place, asked keeper.Logins) (inside keeper.LoginsInside, err error) {
	stream, err := p.dial(ctx)
	if err != nil {
		return inside, err
	}
	defer stream.Close()
	frames := wire.NewReader(stream)
	err = wire.WriteJSON(stream, wire.KindRequest, wire.Request{Version: wire.Version, Op: keeper.OpLogins})
	if err != nil {
		return inside, err
	}
	if kind, payload, err := frames.Next(); err != nil || kind != wire.KindStarted {
		return inside, loginsFailed(p, kind, payload, err)
	}
	if err := wire.WriteJSON(stream, wire.KindStdin, asked); err != nil {
		return inside, err
	}
	kind, payload, err := frames.Next()
	if err != nil || kind != wire.KindResult {
		return inside, loginsFailed(p, kind, payload, err)
	}
	return inside, json.Unmarshal(payload, &inside)
}

func loginsFailed(p *place, kind wire.Kind, payload []byte, err error) error {
	var said wire.Failure
	switch {
	case err == nil && kind == wire.KindError && json.Unmarshal(payload, &said) == nil && said.Text != "":
		err = &fault.Error{Kind: fault.Kind(said.Kind), Text: said.Text, Hint: said.Hint}
	case err == nil:
		err = keeper.ErrOtherVersion(p.record.Name)
	}
	return fault.Wrap("", err, "cannot give sandbox %q the logins of the client", p.record.Name)
}
