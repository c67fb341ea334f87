package engine

import (
	"context"
	"io"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

var errTODO = fault.New(fault.Unsupported, "not built yet")

// Engine is every use case, once.
type Engine struct {
	Progress Progress
}

// Creation is what Create made, and what the user should know about it.
type Creation struct {
	Info
	Notes []string `json:"-"`
}

// TrustResult says what the human has just allowed.
type TrustResult struct {
	Path   string   `json:"path"`
	Hash   string   `json:"hash"`
	Grants []string `json:"grants"`
}

// Check is one line of doctor.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Needed bool   `json:"needed"` // the full tier needs it
	Found  string `json:"found"`
	Mend   string `json:"mend,omitempty"` // exact command
}

// Report is what doctor found.
type Report struct {
	Isolation sandbox.Isolation `json:"isolation"`
	Checks    []Check           `json:"checks"`
}

func (e *Engine) Create(ctx context.Context, r CreateRequest) (Creation, error) {
	return Creation{}, errTODO
}
func (e *Engine) Exec(ctx context.Context, r ExecRequest) (ExecResult, error) {
	return ExecResult{}, errTODO
}
func (e *Engine) Read(ctx context.Context, dir, name, path string, w io.Writer) error { return errTODO }
func (e *Engine) Write(ctx context.Context, r WriteRequest) (*sandbox.Iteration, []string, error) {
	return nil, nil, errTODO
}
func (e *Engine) Copy(ctx context.Context, r CopyRequest) (*sandbox.Iteration, []string, error) {
	return nil, nil, errTODO
}
func (e *Engine) Milestone(ctx context.Context, dir, name, message string) (*sandbox.Iteration, error) {
	return nil, errTODO
}
func (e *Engine) List(ctx context.Context, dir string, all bool) ([]Info, error) { return nil, errTODO }
func (e *Engine) Status(ctx context.Context, dir, name string) (Status, error) {
	return Status{}, errTODO
}
func (e *Engine) Log(ctx context.Context, dir, name string) ([]sandbox.Iteration, error) {
	return nil, errTODO
}
func (e *Engine) Diff(ctx context.Context, r DiffRequest) (int, error) { return 0, errTODO }
func (e *Engine) Merge(ctx context.Context, r MergeRequest) (MergeResult, error) {
	return MergeResult{}, errTODO
}
func (e *Engine) Delete(ctx context.Context, r DeleteRequest) (DeleteResult, error) {
	return DeleteResult{}, errTODO
}
func (e *Engine) Stop(ctx context.Context, dir, name string) error { return errTODO }
func (e *Engine) Start(ctx context.Context, dir, name string, allowDegraded bool) ([]string, error) {
	return nil, errTODO
}
func (e *Engine) Trust(ctx context.Context, dir string) (TrustResult, error) {
	return TrustResult{}, errTODO
}
func (e *Engine) Doctor(ctx context.Context, dir string) (Report, error) { return Report{}, errTODO }
