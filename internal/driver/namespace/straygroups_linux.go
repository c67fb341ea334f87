package namespace

import (
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/namespace/cgroup"
)

// groupAge is how old a control group without a process must be to count as
// left behind: a starting sandbox makes one, and its guest enters it within
// moments.
const groupAge = 10 * time.Minute

// strayGroups lists control groups, named like a sandbox's, in which nothing
// runs.
func strayGroups(known func(sandboxID string) bool) []driver.Stray {
	prefix := groupName("")
	var strays []driver.Stray
	for _, group := range cgroup.Empty(cgroup.Find(), prefix, groupAge) {
		id := strings.TrimPrefix(group.Name, prefix)
		// A sandbox that exists uses its group again, but not a spare one.
		if known(id) && !group.Spare {
			continue
		}
		strays = append(strays, driver.Stray{SandboxID: id, Kind: "a control group", Shared: true, What: group.Dir, End: group.Remove})
	}
	return strays
}
