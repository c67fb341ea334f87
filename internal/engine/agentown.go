package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/agents"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/profile"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
)

// Which of the human's own settings of a client go in, as --settings names them.
const (
	SettingsHarmless = "harmless" // what runs no program; the default
	SettingsAll      = "all"      // also hooks, status lines, servers of MCP and their like
	SettingsNone     = "none"
)

// SettingsChoices are the words that say it.
func SettingsChoices() []string { return []string{SettingsHarmless, SettingsAll, SettingsNone} }

// broughtFile is the record of what was brought into a sandbox, in its directory.
const broughtFile = "brought.json"

// broughtRecord lists the copies of the human's own files and settings in a
// sandbox's home. The next run replaces them, and takes out those that the human
// no longer has.
type broughtRecord struct {
	Files    map[string]string         `json:"files,omitempty"`    // sums, by path below HOME
	Settings map[string]map[string]any `json:"settings,omitempty"` // values, by path below HOME
}

func (p *place) readBrought() (record broughtRecord, err error) {
	data, err := os.ReadFile(p.path(broughtFile))
	if err == nil {
		err = seal.Decode(data, &record)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return broughtRecord{}, fault.Wrap(fault.Unavailable, err, "cannot read what was brought into sandbox %q", p.record.Name)
	}
	return record, nil
}

// bringOwn puts copies of the human's own instructions and settings of a client
// into the sandbox's home. They are made again by each run, so a change inside
// lasts only until then, and never reaches the host.
func (e *Engine) bringOwn(ctx context.Context, p *place, client profile.Profile, which string) error {
	if which == "" {
		which = SettingsHarmless
	}
	if !slices.Contains(SettingsChoices(), which) {
		return fault.New(fault.Invalid, "there are no settings %q: known are %s", which, strings.Join(SettingsChoices(), ", "))
	}
	before, err := p.readBrought()
	if err != nil {
		return err
	}
	brought := agents.Brought{}
	if who := callerOf(ctx); which != SettingsNone && who.Home != "" && len(client.Belongings) > 0 {
		host := agents.Host{Home: who.Home, Env: who.Get}
		brought = host.Bring(client.Belongings, which == SettingsAll)
	}
	for _, note := range brought.Notes {
		p.note(note)
	}
	now := broughtRecord{Files: map[string]string{}, Settings: brought.Settings}
	known := e.secretsOf(ctx)
	for _, file := range brought.Files {
		content := []byte(known.ByValue(string(file.Content)))
		sum := sha256.Sum256(content)
		if err := e.putOwn(ctx, p, file, content, before); errors.Is(err, errIsTheirs) {
			p.note("~/" + file.Path + " inside is the sandbox's own and stays; yours stays outside")
			continue
		} else if err != nil {
			return err
		}
		now.Files[file.Path] = hex.EncodeToString(sum[:])
	}
	var gone []string
	for path := range before.Files {
		if now.Files[path] == "" {
			gone = append(gone, path)
		}
	}
	if len(gone) > 0 {
		slices.Sort(gone)
		const remove = `cd && for f; do rm -f -- "$f"; done`
		if out, code, err := p.inside(ctx, remove, gone...); err != nil || code != 0 {
			return errors.Join(err, fault.New(fault.Unavailable, "cannot take %s out of sandbox %q: %s", strings.Join(gone, ", "), p.record.Name, out))
		}
	}
	if err := p.settleOwn(ctx, before.Settings, now.Settings); err != nil {
		return err
	}
	return p.saveBrought(before, now)
}

// errIsTheirs says that a file inside was not brought there.
var errIsTheirs = errors.New("the file is the sandbox's own")

// putOwn writes one file. A file of that name that the sandbox made stays.
func (e *Engine) putOwn(ctx context.Context, p *place, file agents.BroughtFile, content []byte, before broughtRecord) error {
	if before.Files[file.Path] == "" {
		old, err := p.readHome(ctx, file.Path)
		if err != nil {
			return err
		}
		if old != nil && !bytes.Equal(old, content) {
			return errIsTheirs
		}
	}
	mode := uint32(0o400)
	if file.Program {
		mode = 0o500
	}
	return p.writeHomeAs(ctx, file.Path, content, mode)
}

// settleOwn makes settings files inside hold the human's present values, and no
// longer the earlier ones. Everything else in them stays.
func (p *place) settleOwn(ctx context.Context, before, now map[string]map[string]any) error {
	paths := slices.Collect(maps.Keys(now))
	for path := range before {
		if now[path] == nil {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	for _, path := range paths {
		old, err := p.readHome(ctx, path)
		if err != nil {
			return err
		}
		document, err := parseSettings(path, old)
		if err != nil {
			p.note("~/" + path + " inside cannot be read and stays as it is")
			continue
		}
		takeOut(document, before[path])
		mergeInto(document, now[path], true)
		content, err := writeSettings(path, document)
		if err != nil {
			return fault.Wrap(fault.Internal, err, "cannot write ~/%s inside", path)
		}
		if bytes.Equal(content, old) {
			continue
		}
		if err := p.writeHome(ctx, path, content); err != nil {
			return err
		}
	}
	return nil
}

// takeOut removes values that a document still has as they were put there.
func takeOut(document, values map[string]any) {
	for name, value := range values {
		below, nested := value.(map[string]any)
		there, has := document[name].(map[string]any)
		switch {
		case nested && has:
			if takeOut(there, below); len(there) == 0 {
				delete(document, name)
			}
		case sameSetting(document[name], value):
			delete(document, name)
		}
	}
}

// sameSetting compares values that were read from different formats.
func sameSetting(a, b any) bool {
	one, err := writeSettings("a.json", map[string]any{"": a})
	other, otherErr := writeSettings("b.json", map[string]any{"": b})
	return err == nil && otherErr == nil && bytes.Equal(one, other)
}

// saveBrought saves the record, and says once what now works inside.
func (p *place) saveBrought(before, now broughtRecord) error {
	data, err := seal.Encode(now)
	if old, oldErr := seal.Encode(before); err == nil && oldErr == nil && bytes.Equal(data, old) {
		return nil
	}
	temporary := p.path("." + broughtFile)
	if err == nil {
		err = os.WriteFile(temporary, data, 0o600)
	}
	if err == nil {
		err = os.Rename(temporary, p.path(broughtFile))
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot note what was brought into sandbox %q", p.record.Name)
	}
	var names []string
	for _, path := range slices.Sorted(maps.Keys(now.Files)) {
		names = append(names, "~/"+path)
	}
	for _, path := range slices.Sorted(maps.Keys(now.Settings)) {
		names = append(names, strings.Join(settingNames(now.Settings[path], ""), ", ")+" of ~/"+path)
	}
	const shown = 8
	if len(names) > shown {
		names = append(names[:shown], itoa(len(names)-shown)+" more")
	}
	if len(names) > 0 {
		p.note("copies of your own work inside: " + strings.Join(names, ", ") + " (--settings none leaves them out)")
	}
	return nil
}

// settingNames are the names of what a file of settings holds, two levels deep.
func settingNames(object map[string]any, before string) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if below, ok := object[name].(map[string]any); ok && before == "" && len(below) > 0 {
			names = append(names, settingNames(below, name+".")...)
			continue
		}
		names = append(names, before+name)
	}
	return names
}
