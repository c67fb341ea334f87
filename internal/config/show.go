package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/pelletier/go-toml/v2"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Setting is one key that counts, as a line of TOML.
type Setting struct {
	Key     string
	Value   string // TOML on one line
	Origins []Origin
}

// Origin is one file that sets a key.
type Origin struct {
	File   string
	Value  string // that the file gives
	Counts bool   // the value counts, alone or joined with another file's
}

// Sources are both files as they are written.
type Sources struct {
	user, repo         Config
	userText, repoText map[string]any
}

// LoadSources reads both configurations with their text.
func LoadSources(who *caller.Caller, repoTop string) (s Sources, err error) {
	own, err := ownFile(who)
	if err != nil {
		return s, err
	}
	if own != "" {
		if s.user, s.userText, err = readText(own, 0, false); err != nil {
			return s, err
		}
	}
	if repoTop != "" {
		s.repo, s.repoText, err = readText(filepath.Join(repoTop, RepositoryFile), syscall.O_NOFOLLOW, true)
	}
	return s, err
}

func readText(file string, flags int, repository bool) (c Config, text map[string]any, err error) {
	content, err := readFile(file, flags)
	if err != nil || content == nil {
		return c, nil, err
	}
	if c, err = parse(file, content, repository); err != nil {
		return c, nil, err
	}
	return c, text, toml.Unmarshal(content, &text)
}

// User is the human's own configuration.
func (s Sources) User() Config { return s.user }

// Repository is the configuration of the repository.
func (s Sources) Repository() Config { return s.repo }

// Settings lists every key that one of the files sets, in the order of the
// documentation. counts is the merged configuration. Each value is read back and
// compared with counts, so that the shown value is the one in force. A key that
// does not count has no value.
func (s Sources) Settings(counts Config) ([]Setting, error) {
	var all []Setting
	for _, key := range schema() {
		mine, given := lookUp(s.userText, key.Name)
		theirs, asked := lookUp(s.repoText, key.Name)
		if !given && !asked {
			continue
		}
		set := Setting{Key: key.Name}
		which := -1
		candidates := s.candidates(key, mine, theirs, counts)
		if slices.Contains(counts.Set, key.Name) {
			which = slices.IndexFunc(candidates, func(candidate any) bool { return candidate != nil && reads(key, candidate, counts) })
		}
		if which >= 0 {
			set.Value = inline(candidates[which])
		}
		if which < 0 && given { // the user's value always counts for something
			return nil, fault.New(fault.Internal, "cannot show %s: it does not read back", key.Name)
		}
		if given {
			set.Origins = append(set.Origins, Origin{s.user.File, inline(mine), which != fromRepo})
		}
		if asked {
			set.Origins = append(set.Origins, Origin{s.repo.File, inline(theirs), which == fromRepo || which >= fromBoth})
		}
		all = append(all, set)
	}
	return all, nil
}

// The order of candidates.
const (
	fromUser = iota
	fromRepo
	fromBoth
)

// candidates are the possible values of a key of two files.
func (s Sources) candidates(key key, mine, theirs any, counts Config) []any {
	both := []any{mine, theirs}
	if first, ok := mine.([]any); ok {
		if second, ok := theirs.([]any); ok {
			union, common := slices.Clone(first), []any{}
			for _, item := range second {
				if slices.Contains(first, item) {
					common = append(common, item)
				} else {
					union = append(union, item)
				}
			}
			both = append(both, union, common)
		}
	}
	if first, ok := tableOf(mine); ok {
		if second, ok := tableOf(theirs); ok {
			joined := maps.Clone(first)
			maps.Copy(joined, second)
			both = append(both, joined)
		}
	}
	if name, ok := strings.CutPrefix(key.Name, "limits."); ok && mine != nil && theirs != nil {
		both = append(both, counts.Limits.Text(name))
	}
	return both
}

// tableOf is a table, or a list of names as the table that it stands for: see
// container.ports.
func tableOf(v any) (map[string]any, bool) {
	if list, ok := v.([]any); ok {
		table := map[string]any{}
		for _, item := range list {
			name, ok := item.(string)
			if !ok {
				return nil, false
			}
			table[name] = int64(0)
		}
		return table, true
	}
	table, ok := v.(map[string]any)
	if version, other := table["nodejs"]; other { // see readTools
		table = maps.Clone(table)
		delete(table, "nodejs")
		table["node"] = version
	}
	return table, ok
}

// reads reports whether a file with this value alone sets key to the same as
// counts.
func reads(key key, candidate any, counts Config) bool {
	read, err := Parse("", []byte(key.Name+" = "+inline(candidate)+"\n"))
	if err != nil {
		return false
	}
	var got, want Config
	key.merge(&got, read)
	key.merge(&want, counts)
	return reflect.DeepEqual(got, want)
}

func lookUp(text map[string]any, name string) (any, bool) {
	var at any = text
	for part := range strings.SplitSeq(name, ".") {
		table, ok := at.(map[string]any)
		if !ok {
			return nil, false
		}
		if at, ok = table[part]; !ok {
			return nil, false
		}
	}
	return at, true
}

// inline writes a value on one line of TOML.
func inline(v any) string {
	switch v := v.(type) {
	case string:
		return basicString(v)
	case []any:
		items := make([]string, len(v))
		for n, item := range v {
			items[n] = inline(item)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case map[string]any:
		var entries []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			entries = append(entries, bareOrQuoted(name)+" = "+inline(v[name]))
		}
		if len(entries) == 0 {
			return "{}"
		}
		return "{ " + strings.Join(entries, ", ") + " }"
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return fmt.Sprint(v)
}

func bareOrQuoted(name string) string {
	if name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == "" {
		return name
	}
	return basicString(name)
}

// basicString quotes a string as TOML v1.0 does. Control characters and
// everything else that a terminal acts upon are escaped.
func basicString(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case strconv.IsPrint(c):
			b.WriteRune(c)
		case c > 0xffff:
			fmt.Fprintf(&b, `\U%08X`, c)
		default:
			fmt.Fprintf(&b, `\u%04X`, c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
