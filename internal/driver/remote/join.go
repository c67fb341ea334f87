package remote

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/outpost"
)

// NamespacesThere implements driver.FarJoiner.
func (d *Driver) NamespacesThere(ctx context.Context, lease driver.Lease) (string, error) {
	answer, err := d.about(ctx, lease, outpost.Request{Op: outpost.OpJoin})
	if err == nil && !isNamespaces(answer.Namespaces) {
		err = driver.Joined(driver.ErrUnsupported, errors.New("the outpost does not say where the namespaces are"))
	}
	if err != nil {
		return "", err
	}
	return answer.Namespaces, nil
}

// isNamespaces reports whether dir is that of a process: the machine is not trusted, and
// humans type what it says.
func isNamespaces(dir string) bool {
	below, is := strings.CutPrefix(dir, "/proc/")
	number, ends := strings.CutSuffix(below, "/ns")
	pid, err := strconv.ParseUint(number, 10, 31)
	return is && ends && err == nil && pid > 0 && number == strconv.FormatUint(pid, 10)
}
