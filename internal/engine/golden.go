package engine

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/frozen"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
	"github.com/litterbox-sandbox/litterbox/internal/store"
)

// golden is the record of one golden, in a directory of its own below the state
// directory, where a record of package frozen keeps its layer. It is written last:
// a directory without one is a golden that was never finished. Of several with
// one name and driver the newest counts.
type golden struct {
	Version    int               `json:"version"`
	Name       string            `json:"name"`
	GitDir     string            `json:"git_dir"`
	Repository string            `json:"repository"` // the path of the project inside
	Home       string            `json:"home"`       // inside
	Driver     string            `json:"driver"`
	Image      *sandbox.Image    `json:"base_image"` // nil: the host's own userland
	Base       string            `json:"base"`       // commit
	BaseTree   string            `json:"base_tree"`
	BaseRef    string            `json:"base_ref"`
	CreatedAt  time.Time         `json:"created_at"`
	Took       time.Duration     `json:"took"`
	Layer      string            `json:"layer"`
	Bytes      int64             `json:"bytes"`
	MadeFrom   map[string]string `json:"made_from"` // hashes of what it depends on, by name
	// Placeholders are files of the layer with placeholders of the sandbox that it
	// was built in. Each sandbox gets its own there.
	Placeholders []placed `json:"placeholders"`
	Imported     bool     `json:"imported"`

	dir string
}

// placed is a placeholder in a file.
type placed struct {
	Path        string `json:"path"` // below the layer
	Secret      string `json:"secret"`
	Placeholder string `json:"placeholder"`
}

// goldenRecord is the record's file in the golden's directory.
const goldenRecord = "golden.json"

// DefaultGolden is the name of a golden that is not named.
const DefaultGolden = "default"

// goldensDir holds the directories of all goldens: as deep as those of sandboxes,
// so that both stand on the same store of layers.
func (e *Engine) goldensDir() string { return filepath.Join(e.Store.Root, "golden") }

// goldenID is the length of the suffix that tells goldens of one name apart.
const goldenID = len("20060102150405.000000000")

// newGoldenDir is the directory of a golden that is to be made. Those of one
// repository sort by time.
func (e *Engine) newGoldenDir(gitDir, name string) string {
	return filepath.Join(e.goldensDir(), store.RepositoryKey(gitDir)+"-"+time.Now().UTC().Format("20060102150405.000000000")+"-"+name)
}

// goldenNameOf is the name of the golden in a directory.
func goldenNameOf(dir string) string {
	_, rest, _ := strings.Cut(filepath.Base(dir), "-")
	return rest[min(len(rest), goldenID+1):]
}

// goldenDirs lists the directories of goldens of a repository, oldest first,
// unfinished ones among them; an empty name means all of them, and no repository
// those of all.
func (e *Engine) goldenDirs(gitDir, name string) ([]string, error) {
	entries, err := os.ReadDir(e.goldensDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot list the goldens")
	}
	var dirs []string
	for _, entry := range entries {
		key, rest, ours := strings.Cut(entry.Name(), "-")
		ours = ours && (gitDir == "" || key == store.RepositoryKey(gitDir))
		if ours && len(rest) > goldenID+1 && (name == "" || rest[goldenID+1:] == name) {
			dirs = append(dirs, filepath.Join(e.goldensDir(), entry.Name()))
		}
	}
	return dirs, nil
}

// readGolden reads a golden's record; nil where it was never finished.
func readGolden(dir string) (*golden, error) {
	data, err := os.ReadFile(filepath.Join(dir, goldenRecord))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	g := &golden{dir: dir}
	if err == nil {
		err = seal.Decode(data, g)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot read the golden in %q", dir)
	}
	if g.Version > sandbox.RecordVersion {
		return nil, fault.New(fault.Unsupported, "cannot use the golden in %q: it is version %d and this program knows %d", dir, g.Version, sandbox.RecordVersion).
			WithHint("install a newer litterbox")
	}
	return g, nil
}

// save finishes a golden.
func (g *golden) save(s *store.Store) error {
	data, err := seal.Encode(g)
	path, temp := filepath.Join(g.dir, goldenRecord), filepath.Join(g.dir, "."+goldenRecord)
	if err == nil {
		err = os.WriteFile(temp, data, 0o600)
	}
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot write the record of a golden")
	}
	return nil
}

// goldens lists the goldens of a repository, one of each name and driver, sorted by
// the name; the newest of a name comes first.
func (e *Engine) goldens(gitDir string) ([]*golden, error) {
	dirs, err := e.goldenDirs(gitDir, "")
	if err != nil {
		return nil, err
	}
	var found []*golden
	for _, dir := range slices.Backward(dirs) {
		g, err := readGolden(dir)
		if err != nil {
			return nil, err
		}
		if g != nil && g.GitDir == gitDir && !slices.ContainsFunc(found, g.replaced) {
			found = append(found, g)
		}
	}
	slices.SortStableFunc(found, func(a, b *golden) int { return cmp.Compare(a.Name, b.Name) })
	return found, nil
}

// replaced reports whether a newer golden counts instead.
func (g *golden) replaced(newer *golden) bool {
	return g.Name == newer.Name && g.Driver == newer.Driver
}

// findGolden gives the golden of a name for a driver, or the newest for any if that is
// empty; nil when there is none.
func (e *Engine) findGolden(gitDir, name, driverName string) (*golden, error) {
	dirs, err := e.goldenDirs(gitDir, name)
	if err != nil {
		return nil, err
	}
	for _, dir := range slices.Backward(dirs) {
		g, err := readGolden(dir)
		if err != nil || g != nil && (driverName == "" || g.Driver == driverName) {
			return g, err
		}
	}
	return nil, nil
}

// lockGolden keeps other commands from making or deleting a golden of that name.
func (e *Engine) lockGolden(ctx context.Context, gitDir, name string) (unlock func(), err error) {
	return e.Store.LockRepository(ctx, gitDir, "golden-"+name)
}

// clearGoldens removes the goldens of one name that no longer count: unfinished
// ones, and those before the newest of their driver. The caller holds the lock of the
// name.
func (e *Engine) clearGoldens(ctx context.Context, gitDir, name string) error {
	dirs, err := e.goldenDirs(gitDir, name)
	if err != nil {
		return err
	}
	var count []*golden
	var problems []error
	for _, dir := range slices.Backward(dirs) {
		g, err := readGolden(dir)
		switch {
		case err != nil:
			return err
		case g != nil && !slices.ContainsFunc(count, g.replaced):
			count = append(count, g)
		default:
			problems = append(problems, e.removeGolden(ctx, dir))
		}
	}
	return errors.Join(problems...)
}

// goldenLog is the file with the output of a golden's last build. It stays when the
// build fails.
func (e *Engine) goldenLog(gitDir, name string) string {
	return filepath.Join(e.Store.RepositoryDir(gitDir), "golden-"+name+".log")
}

// goldenBox is the golden as package frozen knows it. All goldens belong to one
// user on the disk, so that a new one can share files with the one before it.
func goldenBox(d driver.Driver, dir string) frozen.Box {
	own := d.Ownership("golden")
	return frozen.Box{Dir: dir, Owner: frozen.Owner{UID: own.UpperUID, GID: own.UpperGID}}
}

// goldenLease names a golden to the driver, which forks it like a sandbox.
func goldenLease(g *golden) driver.Lease {
	return driver.Lease{ID: "golden", SandboxID: "golden", StateDir: g.dir}
}
