package workspace

import (
	"context"
	"os"
)

// Unanswered is a workspace that cannot be asked: every question fails with
// ErrUnknown.
type Unanswered struct {
	Compared Base
	Why      error // the reason
}

// Base implements Workspace.
func (u Unanswered) Base() Base { return u.Compared }

// Where implements Workspace.
func (u Unanswered) Where() string { return "" }

// Exists implements Workspace.
func (u Unanswered) Exists(context.Context) (bool, error) { return false, Unknown(u.Why) }

// Changes implements Workspace.
func (u Unanswered) Changes(context.Context) (Changes, error) { return nil, Unknown(u.Why) }

// Refs implements Workspace.
func (u Unanswered) Refs(context.Context) (map[string]string, error) { return nil, Unknown(u.Why) }

// Touched implements Workspace.
func (u Unanswered) Touched(context.Context, ...string) (bool, error) { return false, Unknown(u.Why) }

// Size implements Workspace.
func (u Unanswered) Size(context.Context) (Size, error) { return Size{}, Unknown(u.Why) }

// Home implements Workspace.
func (u Unanswered) Home(context.Context, string) (*os.Root, error) { return nil, Unknown(u.Why) }
