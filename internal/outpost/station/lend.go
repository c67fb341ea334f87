package station

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/outpost"
)

// mostLent bounds the files that a place shows of the host.
const mostLent = 16

// lentFile is where the content of a lent file lies: what the place mounts.
func lentFile(dir string, n int) string { return filepath.Join(dir, "lent", strconv.Itoa(n)) }

func targets(lent []driver.Lent) []string {
	var all []string
	for _, one := range lent {
		all = append(all, one.Target)
	}
	return all
}

// lendable makes the files that a place mounts, empty until the host sends their
// content.
func (s *Station) lendable(dir string, lent []driver.Lent) ([]driver.Mount, error) {
	if len(lent) == 0 {
		return nil, nil
	}
	if len(lent) > mostLent {
		return nil, fault.New(fault.Invalid, "cannot show more than %d files of the host", mostLent)
	}
	if err := os.MkdirAll(filepath.Join(dir, "lent"), 0o755); err != nil {
		return nil, driver.Seal(err, "cannot make the files that the host lends")
	}
	var mounts []driver.Mount
	for n, one := range lent {
		if err := replace(lentFile(dir, n), nil); err != nil {
			return nil, err
		}
		mounts = append(mounts, driver.Mount{Source: lentFile(dir, n), Target: one.Target})
	}
	return mounts, nil
}

// lend replaces the content of a lent file, which keeps its inode: that is what is
// mounted.
func (s *Station) lend(ctx context.Context, q outpost.Request) error {
	return s.locked(ctx, "place-"+q.Place.Sandbox, func() error {
		r, err := s.its(q.Place)
		if err != nil {
			return err
		}
		n := slices.Index(r.Lent, q.Named())
		if n < 0 {
			return fault.New(fault.NotFound, "the sandbox shows no file of the host at %q", q.Named())
		}
		return replace(lentFile(s.dir(q.Place.Sandbox), n), q.Content)
	})
}

func replace(path string, content []byte) error {
	err := os.WriteFile(path, content, 0o644)
	if err == nil {
		err = os.Chmod(path, 0o644) // another user reads it inside, whatever the umask
	}
	if err != nil {
		return driver.Seal(err, "cannot write a file that the host lends")
	}
	return nil
}
