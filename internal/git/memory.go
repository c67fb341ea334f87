package git

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
)

// Memory keeps what git said about a repository's configuration, so that the
// next command need not start git to learn it again. It counts only as long as
// every file that git would read is exactly as it was.
type Memory struct {
	// Dir returns a private directory for the repository with that common
	// directory; it is made if missing.
	Dir func(commonDir string) string
}

// remembered is the file: one for each git directory.
type remembered struct {
	Version int               `json:"version"`
	Git     string            `json:"git"`     // the program
	Env     map[string]string `json:"env"`     // variables that say where configuration is
	Sources map[string]string `json:"sources"` // path → signature, "" when there is no such file
	Values  map[string]string `json:"values"`
	head
}

// head is a commit that HEAD once named, and its tree; empty where git was
// only asked for its configuration.
type head struct {
	Commit string `json:"commit"`
	Tree   string `json:"tree"`
}

const memoryVersion = 2

// rememberedSections are those whose values are kept. Others are not needed
// here, and can hold passwords (http.extraHeader, url.*).
var rememberedSections = [...]string{"core.", "user.", "author.", "extensions.", "filter.lfs.", "lfs."}

// Open is [Open] without a process, where the memory and a look at the files
// give the same answer; otherwise it asks git, and remembers.
func (m Memory) Open(ctx context.Context, dir string) (*Repository, error) {
	location, plain := Locate(dir)
	if !plain {
		return Open(ctx, dir)
	}
	if err := checkBorrowed(ctx, location.CommonDir); err != nil {
		return nil, err
	}
	path, who := m.path(location), caller.Of(ctx)
	if r := quickOpen(dir, location, recall(who, path, location)); r != nil {
		r.caller = who
		return r, nil
	}
	started := time.Now()
	r, err := Open(ctx, dir)
	if err == nil && r.Location == location {
		if said, err := r.Settings(); err == nil {
			remember(who, path, location, said, head{r.Head, r.HeadTree}, started)
		}
	}
	return r, err
}

// At is [At] with what the memory knows of the user's settings.
func (m Memory) At(ctx context.Context, commonDir, top, oid string) *Repository {
	r := At(ctx, commonDir, top, oid)
	location := r.Location
	// Asked of the common directory, as At does: a linked work tree's own
	// configuration is for its own commands.
	location.GitDir = commonDir
	path, ask := m.path(location), r.Settings
	r.Settings = sync.OnceValues(func() (*Settings, error) {
		if known := recall(r.caller, path, location); known != nil {
			return &Settings{Values: known.Values, caller: r.caller}, nil
		}
		started := time.Now()
		said, err := ask()
		if err == nil {
			remember(r.caller, path, location, said, lastHead(path), started)
		}
		return said, err
	})
	return r
}

func (m Memory) path(l Location) string {
	sum := sha256.Sum256([]byte(l.GitDir))
	return filepath.Join(m.Dir(l.CommonDir), "git-"+hex.EncodeToString(sum[:8])+".json")
}

// readMemory reads the memory, whether it still holds or not.
func readMemory(path string) (found remembered, ok bool) {
	data, err := os.ReadFile(path)
	if err != nil || seal.Decode(data, &found) != nil || found.Version != memoryVersion {
		return remembered{}, false
	}
	return found, true
}

// lastHead returns what stays true of a memory that no longer holds: the tree
// of a commit.
func lastHead(path string) head {
	found, _ := readMemory(path)
	return found.head
}

// recall reads the memory; nil if there is none or it may no longer hold.
func recall(who *caller.Caller, path string, l Location) *remembered {
	found, ok := readMemory(path)
	if !ok {
		return nil
	}
	git, err := exec.LookPath("git")
	if err != nil || git != found.Git || !maps.Equal(configEnv(who), found.Env) {
		return nil
	}
	for _, source := range configFiles(who, git, l) {
		if _, known := found.Sources[source]; !known {
			return nil
		}
	}
	for source, signature := range found.Sources {
		if now, _ := signatureOf(source); now != signature {
			return nil
		}
	}
	return &found
}

// settled reports whether a file has been left alone long enough by now for
// its times to identify its content: the kernel's clock ticks every 1 to 10
// ms, and some file systems count in seconds, or two.
func settled(changed, now time.Time) bool {
	if changed.Nanosecond() == 0 {
		return now.Sub(changed) > 3*time.Second
	}
	return now.Sub(changed) > 100*time.Millisecond
}

// remember keeps what git said since started. It is housekeeping: what cannot
// be kept is asked for again the next time.
func remember(who *caller.Caller, path string, l Location, said *Settings, at head, started time.Time) {
	git, err := exec.LookPath("git")
	if err != nil {
		return
	}
	found := remembered{Version: memoryVersion, Git: git, Env: configEnv(who), Sources: map[string]string{},
		Values: map[string]string{}, head: at}
	for _, source := range append(configFiles(who, git, l), said.files...) {
		if !filepath.IsAbs(source) {
			continue // git's name for the repository's own files, which are among ours
		}
		signature, changed := signatureOf(source)
		if signature != "" && !settled(changed, started) {
			return
		}
		found.Sources[source] = signature
	}
	for key, value := range said.Values {
		if strings.HasPrefix(key, "include.") || strings.HasPrefix(key, "includeif.") {
			return // then the result depends on more than files
		}
		if isPromisor(key) || slices.ContainsFunc(rememberedSections[:], func(s string) bool { return strings.HasPrefix(key, s) }) {
			found.Values[key] = value
		}
	}
	if data, err := seal.Encode(found); err == nil {
		_ = ReplaceFile(path, data)
	}
}

// ReplaceFile writes a file in one step.
func ReplaceFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// configEnv returns the part of a caller's environment that [call] hands on and
// that tells git where its configuration is.
func configEnv(who *caller.Caller) map[string]string {
	env := map[string]string{}
	for _, key := range []string{"HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH"} {
		if value, set := who.Lookup(key); set {
			env[key] = value
		}
	}
	return env
}

// configFiles returns the files in which git looks for configuration
// (git-config(1), FILES), whether they exist or not, and git itself.
func configFiles(who *caller.Caller, git string, l Location) []string {
	files := []string{git, filepath.Join(l.CommonDir, "config"), filepath.Join(l.GitDir, "config.worktree"), "/etc/gitconfig"}
	if real, err := filepath.EvalSymlinks(git); err == nil {
		// Built for another prefix than /usr, git has its own etc there.
		files = append(files, real, filepath.Join(filepath.Dir(filepath.Dir(real)), "etc", "gitconfig"))
	}
	for _, key := range []string{"GIT_CONFIG_SYSTEM", "GIT_CONFIG_GLOBAL"} {
		if path := who.Get(key); path != "" {
			files = append(files, path)
		}
	}
	home := who.Get("HOME")
	if home != "" {
		files = append(files, filepath.Join(home, ".gitconfig"))
	}
	if xdg := who.Get("XDG_CONFIG_HOME"); xdg != "" {
		files = append(files, filepath.Join(xdg, "git", "config"))
	} else if home != "" {
		files = append(files, filepath.Join(home, ".config", "git", "config"))
	}
	return files
}

// signatureOf returns a text that tells one state of a file from the next, and
// when it last changed. Links are followed, as git does.
func signatureOf(path string) (signature string, changed time.Time) {
	signature, changed, err := statIdentity(path)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return "", time.Time{}
	}
	if err != nil {
		return "unreadable: " + err.Error(), time.Time{}
	}
	return signature, changed
}

func isPromisor(key string) bool {
	return len(key) > len("remote..promisor") && strings.HasPrefix(key, "remote.") && strings.HasSuffix(key, ".promisor")
}

// Partial returns the name of the remote that a partial clone was made from.
func (r *Repository) Partial() string {
	s, err := r.Settings()
	if err != nil || r.View != "" {
		return ""
	}
	// git 2.24 and newer note it at the remote, older ones as an extension.
	for _, key := range slices.Sorted(maps.Keys(s.Values)) {
		if isPromisor(key) && s.Truth(key) {
			return key[len("remote.") : len(key)-len(".promisor")]
		}
	}
	return s.Values["extensions.partialclone"]
}
