package git

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Settings is the user's effective git configuration, as data. It is the
// human's own (system, global, repository); nothing in it comes from a sandbox.
type Settings struct {
	Values map[string]string // lower-case section and key; the last one wins
	files  []string          // where they came from
	caller *caller.Caller    // the user they belong to
}

// ReadSettings runs git config and returns a function that returns the outcome.
func ReadSettings(ctx context.Context, c Command) func() (*Settings, error) {
	c.Args = []string{"config", "--list", "-z", "--show-origin"}
	out, err := c.Output(ctx)
	s := &Settings{Values: map[string]string{}, caller: caller.Of(ctx)}
	// Origin and value take turns; after "file:" the origin is a path as git
	// opened it, relative to where it ran.
	items := bytes.Split(bytes.TrimSuffix(out, []byte{0}), []byte{0})
	for i := 0; i+1 < len(items); i += 2 {
		if path, ok := strings.CutPrefix(string(items[i]), "file:"); ok && !slices.Contains(s.files, path) {
			s.files = append(s.files, path)
		}
		key, value, valued := strings.Cut(string(items[i+1]), "\n")
		if !valued {
			value = "true" // git-config(1): a key alone is a true boolean
		}
		s.Values[key] = value
	}
	if err != nil {
		err = fault.Wrap(fault.Invalid, err, "cannot read the git configuration").WithHint("git config --list")
	}
	return func() (*Settings, error) { return s, err }
}

// AllSettings reads the user's whole configuration as it is now, for the rare
// values that no memory keeps.
func (r *Repository) AllSettings(ctx context.Context) (*Settings, error) {
	return ReadSettings(ctx, r.InCheckout())()
}

// Of returns a value, "" if there is none.
func (s *Settings) Of(key string) string { return s.Values[key] }

// Truth reads a boolean as git does.
func (s *Settings) Truth(key string) bool {
	switch strings.ToLower(s.Values[key]) {
	case "true", "yes", "on", "1":
		return true
	}
	return false
}

// AutoCRLF returns core.autocrlf as "true", "input" or "false".
func (s *Settings) AutoCRLF() string {
	if strings.EqualFold(s.Values["core.autocrlf"], "input") {
		return "input"
	}
	if s.Truth("core.autocrlf") {
		return "true"
	}
	return "false"
}

// Eol returns core.eol as "lf", "crlf" or "native".
func (s *Settings) Eol() string {
	switch v := strings.ToLower(s.Values["core.eol"]); v {
	case "lf", "crlf":
		return v
	}
	return "native"
}

// MaxRules is the largest ignore or attribute file that is read, in bytes; git
// itself ignores attribute files beyond 100 MB (2.39).
const MaxRules = 16 << 20

// userFile reads a file that configuration names, or the default below
// XDG_CONFIG_HOME (gitignore(5), gitattributes(5)). A missing file is empty.
func (s *Settings) userFile(key, standard string) ([]byte, error) {
	path, set := s.Values[key]
	home, config := s.caller.Get("HOME"), s.caller.Get("XDG_CONFIG_HOME")
	switch {
	case !set && config != "":
		path = filepath.Join(config, "git", standard)
	case !set && home != "":
		path = filepath.Join(home, ".config", "git", standard)
	case strings.HasPrefix(path, "~/"):
		path = filepath.Join(home, path[2:])
	}
	if path == "" || !filepath.IsAbs(path) {
		return nil, nil
	}
	return readRules(path)
}

func readRules(path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.Denied, err, "cannot read %q", path)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(f, MaxRules))
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "cannot read %q", path)
	}
	return content, nil
}

// Rules are the user's ignore and attribute files outside the work tree.
type Rules struct {
	ExcludesFile, Exclude []byte // core.excludesFile, info/exclude
	AttributesFile        []byte // core.attributesFile
	Attributes            []byte // info/attributes
}

func (r *Repository) Rules(s *Settings) (Rules, error) {
	var found Rules
	var errs [4]error
	found.ExcludesFile, errs[0] = s.userFile("core.excludesfile", "ignore")
	found.AttributesFile, errs[1] = s.userFile("core.attributesfile", "attributes")
	found.Exclude, errs[2] = readRules(filepath.Join(r.CommonDir, "info", "exclude"))
	found.Attributes, errs[3] = readRules(filepath.Join(r.CommonDir, "info", "attributes"))
	return found, errors.Join(errs[:]...)
}

// Identity returns the author that the user's own commits would have. It fails
// with Invalid, and the commands to type, if none is configured.
func (r *Repository) Identity(ctx context.Context) (sandbox.Identity, error) {
	s, err := r.Settings()
	if err != nil {
		return sandbox.Identity{}, err
	}
	who := caller.Of(ctx)
	first := func(candidates ...string) string {
		for _, v := range candidates {
			if v = strings.TrimSpace(v); v != "" {
				return v
			}
		}
		return ""
	}
	id := sandbox.Identity{
		Name:  first(who.Get("GIT_AUTHOR_NAME"), s.Values["author.name"], s.Values["user.name"]),
		Email: first(who.Get("GIT_AUTHOR_EMAIL"), s.Values["author.email"], s.Values["user.email"], who.Get("EMAIL")),
	}
	if id.Name != "" && id.Email != "" {
		return id, nil
	}
	// git can still know one: from the password database and the host name.
	c := r.Command("var", "GIT_AUTHOR_IDENT")
	for _, key := range []string{"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL"} {
		if v := who.Get(key); v != "" {
			c.Env = append(c.Env, key+"="+v)
		}
	}
	line, err := c.Line(ctx)
	name, rest, ok := strings.Cut(line, " <")
	email, _, closed := strings.Cut(rest, "> ")
	if err != nil || !ok || !closed || name == "" || email == "" {
		return sandbox.Identity{}, fault.New(fault.Invalid, "cannot tell who the author of commits is: git has no name or email").
			WithHint(`git config --global user.name "Your Name" && git config --global user.email you@example.com`)
	}
	return sandbox.Identity{Name: name, Email: email}, nil
}
