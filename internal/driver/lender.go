package driver

import "context"

// Lent is a small file of this machine that a place in another one shows at Target,
// read-only and empty until [Lender.Lend] gives it its content.
type Lent struct {
	Source string `json:",omitempty"` // for the keeper: the other machine has no use for it
	Target string
}

// Lender is also implemented by drivers whose Traits say that they lend. Copies of
// Spec.Lent outlive neither the place nor its stop.
type Lender interface {
	// Lend replaces the content of the file at target in a running place. Programs
	// that read it meanwhile may see a part of it. A target that Spec.Lent did not
	// have is a fault.NotFound.
	Lend(ctx context.Context, lease Lease, target string, content []byte) error
}
