package engine

import (
	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/egress"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// connects refuses a policy that allows traffic from places that have no way out:
// every listing would show the rules, and nothing would enforce them.
func connects(d driver.Driver, policy *egress.Policy) error {
	if d == nil || d.Traits().Network != sandbox.NetworkNone || len(policy.Allow) == 0 && policy.Default != egress.Allow {
		return nil
	}
	return fault.Wrap("", driver.ErrUnsupported, "cannot change the network rules of a sandbox of the %s driver: it has no network", d.Name()).
		WithHint("litterbox create NAME --driver %s", "namespace")
}
