package keeper

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/egress/renew"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/login"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
	"github.com/litterbox-sandbox/litterbox/internal/secret"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// LoginsFile says which logins of agents' clients work in a sandbox, in its
// directory. The keeper alone writes it. It holds placeholders and no token.
const LoginsFile = "logins.json"

// OpLogins makes logins work inside: KindStarted, answered by one KindStdin
// frame with [Logins] → [LoginsInside].
const OpLogins wire.Op = "keeper.logins"

// Logins are the logins that a client of the keeper names.
type Logins struct {
	Logins []HostLogin `json:"logins"`
	Locks  string      `json:"locks"` // the directory of the locks that all of the human's keepers share
}

// HostLogin is a login with where the host's client keeps it.
type HostLogin struct {
	Name  string   `json:"name"`
	File  string   `json:"file"`
	Locks []string `json:"locks,omitempty"`
}

// LoginsInside is what stands for logins inside, by name: the content of the
// client's file. One that the host no longer has is left out.
type LoginsInside struct {
	Documents map[string]map[string]any `json:"documents"`
}

// loginsRecord is the content of LoginsFile.
type loginsRecord struct {
	Locks  string       `json:"locks"`
	Logins []savedLogin `json:"logins"`
}

type savedLogin struct {
	HostLogin
	Stand []stand `json:"stand"`
}

// stand is a placeholder of a token. The last one of a token is in use; those
// before are in the memory of clients.
type stand struct {
	Token       int    `json:"token"`
	Placeholder string `json:"placeholder"`
}

// generations is how many placeholders of a token are valid at the same time.
// There is more than one only where a placeholder shows claims that change.
const generations = 4

// HasLogins reports whether some login works in the sandbox in dir, so that it
// must trust its own authority.
func HasLogins(dir string) bool {
	record, err := readLogins(dir)
	return err == nil && len(record.Logins) > 0
}

func readLogins(dir string) (loginsRecord, error) {
	return readRecord[loginsRecord](filepath.Join(dir, LoginsFile), "logins")
}

// logins are the logins that work in the sandbox.
type logins struct {
	mu     sync.Mutex
	record loginsRecord
	kept   []*renew.Kept
}

// all implements what renew.New takes.
func (l *logins) all() []*renew.Kept {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.kept)
}

// openLogins puts the logins of the record in force. A damaged record has none,
// so that nothing is sent anywhere.
func (n *network) openLogins() {
	record, err := readLogins(n.dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "keeper:", err)
	}
	n.logins.record = record
	for i := range record.Logins {
		n.keepLogin(record.Logins[i].Name)
	}
	for _, one := range n.logins.kept {
		go func() {
			// The keeper before this one may have been killed.
			if err := one.RecoverNow(context.Background(), one.Path, one.Own, one.Locks); err != nil {
				fmt.Fprintln(os.Stderr, "keeper:", err)
			}
		}()
	}
}

// saved finds a login. It is called with mu held, or before anything else runs.
func (l *logins) saved(name string) *savedLogin {
	i := slices.IndexFunc(l.record.Logins, func(one savedLogin) bool { return one.Name == name })
	if i < 0 {
		return nil
	}
	return &l.record.Logins[i]
}

// keepLogin arranges that a login of the record is renewed and its tokens are
// put in. It is called like saved.
func (n *network) keepLogin(name string) {
	known, ok := login.ByName(name)
	one := n.logins.saved(name)
	if !ok || one == nil {
		return // of another version
	}
	n.bindLogin(known, one)
	n.logins.kept = slices.DeleteFunc(n.logins.kept, func(k *renew.Kept) bool { return k.Name == name })
	n.logins.kept = append(n.logins.kept, &renew.Kept{
		Login: known, Path: one.File, Locks: one.Locks, Own: filepath.Join(n.logins.record.Locks, "login-"+name+".lock"),
		Stand:     func(values []string) ([]string, error) { return n.standFor(name, values) },
		IsRefresh: func(text string) bool { return n.logins.isRefresh(known, text) },
	})
}

// renewalPatience is how long the end of a keeper waits for a renewal.
const renewalPatience = 10 * time.Second

// awaitRenewals waits for renewals whose answers would be lost.
func (n *network) awaitRenewals() {
	ctx, cancel := context.WithTimeout(context.Background(), renewalPatience)
	defer cancel()
	n.renewals.Wait(ctx)
}

// isRefresh reports whether a text stands for the refresh token of a login.
func (l *logins) isRefresh(known login.Login, text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.saved(known.Name)
	return one != nil && text != "" && slices.ContainsFunc(one.Stand, func(s stand) bool {
		return s.Token < len(known.Tokens) && known.Tokens[s.Token].Role == login.Refresh && s.Placeholder == text
	})
}

// standFor returns placeholders for tokens, and puts new ones in force.
func (n *network) standFor(name string, values []string) ([]string, error) {
	n.logins.mu.Lock()
	defer n.logins.mu.Unlock()
	one := n.logins.saved(name)
	known, ok := login.ByName(name)
	if one == nil || !ok {
		return nil, fault.New(fault.NotFound, "there is no login %q in the sandbox", name)
	}
	placeholders, changed := make([]string, len(values)), false
	for token, value := range values {
		if value == "" {
			continue
		}
		text := []byte(value)
		for _, s := range slices.Backward(one.Stand) {
			if s.Token == token && secret.Stands(s.Placeholder, text) {
				placeholders[token] = s.Placeholder
				break
			}
		}
		if placeholders[token] == "" {
			made, err := secret.Placeholder(text)
			if err != nil {
				return nil, err
			}
			placeholders[token], changed = made, true
			one.Stand = append(one.Stand, stand{token, made})
			one.Stand = dropOldest(one.Stand, token)
		}
		clear(text)
	}
	if !changed {
		return placeholders, nil
	}
	if err := n.saveLogins(); err != nil {
		return nil, err
	}
	n.bindLogin(known, one)
	return placeholders, nil
}

// dropOldest keeps the generations of a token that are still valid.
func dropOldest(all []stand, token int) []stand {
	count := 0
	for _, s := range all {
		if s.Token == token {
			count++
		}
	}
	return slices.DeleteFunc(all, func(s stand) bool {
		if s.Token != token || count <= generations {
			return false
		}
		count--
		return true
	})
}

// saveLogins is called with mu held.
func (n *network) saveLogins() error {
	data, err := seal.Encode(n.logins.record)
	temporary := filepath.Join(n.dir, "."+LoginsFile)
	if err == nil {
		err = os.WriteFile(temporary, data, 0o600)
	}
	if err == nil {
		err = os.Rename(temporary, filepath.Join(n.dir, LoginsFile))
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot write which logins the sandbox has")
	}
	return nil
}

// bindLogin arranges where the placeholders of a login are replaced: an access
// token's in the header of requests, a refresh token's by the renewal alone, an
// identity token's nowhere.
func (n *network) bindLogin(known login.Login, one *savedLogin) {
	wanted := map[string]bool{}
	count := map[int]int{}
	file := one.File
	for _, s := range one.Stand {
		if s.Token >= len(known.Tokens) {
			continue // of another version
		}
		token := known.Tokens[s.Token]
		count[s.Token]++
		binding := secret.Binding{Placeholder: s.Placeholder}
		binding.Name = loginSecret(known.Name, token.Role, count[s.Token])
		if token.Role == login.Access {
			binding.In = []secret.Place{secret.Header}
		}
		for _, route := range token.To {
			host, err := secret.ParseHost(route.Host)
			if err != nil {
				continue // the test of the table finds it
			}
			binding.Hosts = append(binding.Hosts, host)
			binding.Routes = append(binding.Routes, secret.Route{Host: host, Under: route.Under, Never: route.Never})
		}
		wanted[binding.Name] = true
		if slices.ContainsFunc(n.secrets.State().Bound, func(b *secret.Bound) bool {
			return b.Name == binding.Name && b.Placeholder == binding.Placeholder
		}) {
			continue
		}
		index := s.Token
		n.secrets.BindFresh(binding, func(context.Context) ([]byte, error) { return readToken(known, file, index) })
	}
	for n2 := range known.Tokens { // those of generations no longer valid
		for generation := count[n2] + 1; generation <= generations; generation++ {
			if name := loginSecret(known.Name, known.Tokens[n2].Role, generation); !wanted[name] {
				n.secrets.Remove(name)
			}
		}
	}
}

// loginSecret is the name of a token in messages. It has characters that no
// configured secret's name has.
func loginSecret(name string, role login.Role, generation int) string {
	text := "login " + name + " " + string(role)
	if generation > 1 {
		text += " " + strconv.Itoa(generation)
	}
	return text
}

// readToken reads a token where the host's client keeps it.
func readToken(known login.Login, file string, token int) ([]byte, error) {
	document, err := login.ReadFile(file)
	if err != nil {
		return nil, err
	}
	values, err := known.Values(document)
	if err != nil {
		return nil, err
	}
	if values[token] == "" {
		return nil, fault.New(fault.NotFound, "%s no longer has this token", known.Title)
	}
	return []byte(values[token]), nil
}

// admitLogins answers OpLogins.
func (n *network) admitLogins(conn net.Conn) error {
	if err := wire.WriteJSON(conn, wire.KindStarted, wire.Empty{}); err != nil {
		return err
	}
	kind, payload, err := wire.NewReader(conn).Next()
	if err != nil {
		return err
	}
	var asked Logins
	if kind != wire.KindStdin || json.Unmarshal(payload, &asked) != nil || !filepath.IsAbs(asked.Locks) {
		return fault.New(fault.Invalid, "cannot understand which logins are meant")
	}
	inside := LoginsInside{Documents: map[string]map[string]any{}}
	for _, one := range asked.Logins {
		known, ok := login.ByName(one.Name)
		if !ok || !filepath.IsAbs(one.File) {
			continue // of another version
		}
		if err := known.RecoverNow(context.Background(), one.File, filepath.Join(asked.Locks, "login-"+one.Name+".lock"), one.Locks); err != nil {
			fmt.Fprintln(os.Stderr, "keeper:", err) // the next renewal reports it
		}
		document, err := login.ReadFile(one.File)
		if err != nil {
			continue // the host no longer has it
		}
		values, err := known.Values(document)
		if err != nil {
			continue
		}
		n.logins.mu.Lock()
		n.logins.record.Locks = asked.Locks
		if saved := n.logins.saved(one.Name); saved == nil {
			n.logins.record.Logins = append(n.logins.record.Logins, savedLogin{HostLogin: one})
		} else {
			saved.HostLogin = one
		}
		n.keepLogin(one.Name)
		n.logins.mu.Unlock()
		placeholders, err := n.standFor(one.Name, values)
		if err != nil {
			return fault.Wrap("", err, "cannot use the login of %s", known.Title)
		}
		inside.Documents[one.Name] = known.Inside(document, placeholders)
	}
	if len(inside.Documents) > 0 {
		if err := n.prepare(); err != nil {
			return err
		}
	}
	return wire.WriteJSON(conn, wire.KindResult, inside)
}
