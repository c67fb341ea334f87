// Package login is what is known of the logins that agents' clients keep in
// files and renew by themselves: where the files are, which values in them are
// tokens, where each token may be sent, and how it is renewed.
//
// A sandbox gets a file of the same shape that holds placeholders; the keeper
// reads the values here when they are used, and writes renewed ones where the
// host's client keeps them. This package is data, functions on documents, and
// the host's file itself. It sends nothing and knows no sandbox.
//
// Start reading at [Login]; the table is in clients.go.
package login

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Login is one login that a client keeps in a file.
type Login struct {
	Name   string // unique; messages and the keeper's records have it
	Client string // of the profile
	Title  string // as messages call it
	File   string // below HOME
	// Moved is the variable that names another directory in the place of the
	// first Levels elements of File; empty where the client has none.
	Moved  string
	Levels int

	At     []string // the object in the file; empty: the whole
	Is     string   // the value of "type" that the object has; empty: any
	Lacks  []string // an object with one of these is not meant: its tokens are for other hosts
	Tokens []Token
	Keep   [][]string // values that go inside unchanged, below At
	Beside []Beside   // other files that the client wants to find

	Expiry  []string // when the access token ends, in milliseconds; empty: the token says it
	Stamp   []string // when it was renewed last, as RFC 3339 has it; may be empty
	Renewal *Renewal // nil for one that does not end
	// Locks are directories below HOME that the client makes while it renews
	// the login, in their order (the package proper-lockfile of npm).
	Locks []string
}

// Role is what a token is for.
type Role string

// The roles of tokens.
const (
	Access   Role = "access"   // sent with each request
	Refresh  Role = "refresh"  // gets the next access token
	Identity Role = "identity" // names the user; the client reads it and sends it nowhere
)

// Token is one value of a login.
type Token struct {
	Role   Role
	At     []string   // below Login.At
	Also   [][]string // other places with the same value, as far as the file has them
	Answer string     // its name in the answer of a renewal
	To     []Route    // where it may be sent
}

// Route is a host with the paths that are meant. Without Under these are all;
// Never excludes some.
type Route struct {
	Host  string
	Under []string
	Never []string
}

// Renewal is how a login is renewed: a POST with grant_type=refresh_token, in
// JSON or as a form (RFC 6749, section 6).
type Renewal struct {
	Hosts  []string
	Path   string
	Client string   // client_id
	Keep   []string // values of the answer that go inside besides the tokens
	// Scopes is where the login has its scopes: a list, or text with spaces.
	Scopes []string
}

// Beside is a file with data about an account that a client wants. It holds no
// token.
type Beside struct {
	File string // below HOME
	Keep [][]string
}

// For are the logins of a client.
func For(client string) []Login {
	return slices.DeleteFunc(All(), func(l Login) bool { return l.Client != client })
}

// ByName finds a login.
func ByName(name string) (Login, bool) {
	all := All()
	i := slices.IndexFunc(all, func(l Login) bool { return l.Name == name })
	if i < 0 {
		return Login{}, false
	}
	return all[i], true
}

// Path is where a file of the login is on the host; empty without a HOME.
func (l Login) Path(file, home string, variable func(string) string) string {
	dir := strings.Join(strings.Split(l.File, "/")[:l.Levels], "/")
	if l.Moved != "" {
		if moved := variable(l.Moved); filepath.IsAbs(moved) {
			if below, ok := strings.CutPrefix(file, dir+"/"); ok {
				file = below
			}
			if dir != "" && file == dir+lockSuffix {
				return resolved(moved) + lockSuffix
			}
			return filepath.Join(moved, filepath.FromSlash(file))
		}
	}
	if home == "" {
		return ""
	}
	if dir != "" && file == dir+lockSuffix {
		return resolved(filepath.Join(home, filepath.FromSlash(dir))) + lockSuffix
	}
	return filepath.Join(home, filepath.FromSlash(file))
}

const lockSuffix = ".lock"

// resolved follows symbolic links, as proper-lockfile does before it makes a
// lock beside a directory.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// Values are the tokens that a document holds, in the order of Tokens; an empty
// one is missing. It fails with fault.NotFound where the document has no such
// login. Errors show no value.
func (l Login) Values(document map[string]any) ([]string, error) {
	object, ok := lookup(document, l.At).(map[string]any)
	if kind, _ := object["type"].(string); !ok || l.Is != "" && kind != l.Is {
		return nil, fault.New(fault.NotFound, "there is no login of %s", l.Title)
	}
	if slices.ContainsFunc(l.Lacks, func(name string) bool { return object[name] != nil && object[name] != "" }) {
		return nil, fault.New(fault.NotFound, "there is no login of %s", l.Title)
	}
	values, any := make([]string, len(l.Tokens)), false
	for n, token := range l.Tokens {
		values[n], _ = lookup(object, token.At).(string)
		any = any || values[n] != "" && token.Role != Identity
	}
	if !any {
		return nil, fault.New(fault.NotFound, "there is no login of %s", l.Title)
	}
	return values, nil
}

// Inside is the document that a sandbox gets: placeholders, one for each of
// Tokens, and the values that Keep names.
func (l Login) Inside(document map[string]any, placeholders []string) map[string]any {
	object, _ := lookup(document, l.At).(map[string]any)
	inside := map[string]any{}
	for _, path := range l.Keep {
		if value := lookup(object, path); value != nil {
			put(inside, path, value)
		}
	}
	if l.Is != "" {
		inside["type"] = l.Is
	}
	for n, token := range l.Tokens {
		if placeholders[n] == "" {
			continue
		}
		for _, path := range token.places(object) {
			put(inside, path, placeholders[n])
		}
	}
	return at(l.At, inside)
}

// BesideInside is the part of a file beside that a sandbox gets.
func (b Beside) BesideInside(document map[string]any) map[string]any {
	inside := map[string]any{}
	for _, path := range b.Keep {
		if value := lookup(document, path); value != nil {
			put(inside, path, value)
		}
	}
	return inside
}

// places are where an object has the token.
func (t Token) places(object map[string]any) [][]string {
	places := [][]string{t.At}
	for _, path := range t.Also {
		if lookup(object, path) != nil {
			places = append(places, path)
		}
	}
	return places
}

// Ends is when the access token ends: by the file or by the token itself, whichever
// is earlier, as clients see it; zero where neither tells.
func (l Login) Ends(document map[string]any) (end time.Time) {
	if len(l.Expiry) > 0 {
		if ms, ok := number(lookup(document, slices.Concat(l.At, l.Expiry))); ok {
			end = time.UnixMilli(ms)
		}
	}
	values, err := l.Values(document)
	if err != nil {
		return end
	}
	for n, token := range l.Tokens {
		if claimed := claimedEnd(values[n]); token.Role == Access && !claimed.IsZero() && (end.IsZero() || claimed.Before(end)) {
			end = claimed
		}
	}
	return end
}

// lifetime is the life of an access token whose answer does not tell.
const lifetime = time.Hour

// Renew puts the answer of a renewal into a document, and reports whether there
// was an access token in it. Values that the answer does not name stay.
func (l Login) Renew(document, answer map[string]any, now time.Time) bool {
	object, ok := lookup(document, l.At).(map[string]any)
	if !ok {
		return false
	}
	var access string
	for _, token := range l.Tokens {
		value, _ := answer[token.Answer].(string)
		if value == "" || token.Answer == "" {
			continue
		}
		for _, path := range token.places(object) {
			put(object, path, value)
		}
		if token.Role == Access {
			access = value
		}
	}
	if access == "" {
		return false
	}
	if len(l.Expiry) > 0 {
		end := now.Add(lifetime)
		if seconds, ok := number(answer["expires_in"]); ok && seconds > 0 {
			end = now.Add(time.Duration(min(seconds, maxSeconds)) * time.Second)
		} else if claimed := claimedEnd(access); !claimed.IsZero() {
			end = claimed
		}
		put(object, l.Expiry, end.UnixMilli())
	}
	if len(l.Stamp) > 0 {
		put(object, l.Stamp, now.UTC().Format(time.RFC3339Nano))
	}
	if scope, _ := answer["scope"].(string); scope != "" && l.Renewal != nil && len(l.Renewal.Scopes) > 0 {
		if _, list := lookup(object, l.Renewal.Scopes).([]any); list {
			words := []any{}
			for _, word := range strings.Fields(scope) {
				words = append(words, word)
			}
			put(object, l.Renewal.Scopes, words)
		} else {
			put(object, l.Renewal.Scopes, scope)
		}
	}
	return true
}

// maxSeconds keeps a host's number within what a time can hold.
const maxSeconds = 10 * 365 * 24 * 3600

// Scopes are those of the login in a document.
func (l Login) Scopes(document map[string]any) []string {
	if l.Renewal == nil || len(l.Renewal.Scopes) == 0 {
		return nil
	}
	switch found := lookup(document, slices.Concat(l.At, l.Renewal.Scopes)).(type) {
	case string:
		return strings.Fields(found)
	case []any:
		var scopes []string
		for _, one := range found {
			if text, ok := one.(string); ok {
				scopes = append(scopes, text)
			}
		}
		return scopes
	}
	return nil
}
