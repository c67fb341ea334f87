package engine

import (
	"context"

	"github.com/litterbox-sandbox/litterbox/internal/redact"
	"github.com/litterbox-sandbox/litterbox/internal/secret"
	"github.com/litterbox-sandbox/litterbox/internal/secret/vault"
	"github.com/litterbox-sandbox/litterbox/internal/store"
)

// secretsOf are the secrets that no record for a caller may show: those of the
// caller's environment, and values of [secrets] that were ever read here.
func (e *Engine) secretsOf(ctx context.Context) redact.Secrets {
	return e.Store.Redacts().And(callerOf(ctx).Secrets()...)
}

// secretsOf are those of the caller, and the values that the command was given.
func (r *ExecRequest) secretsOf(ctx context.Context, e *Engine) redact.Secrets {
	return e.secretsOf(ctx).And(redact.Values(r.Env)...)
}

// know keeps a value that was read out of records.
func know(ctx context.Context, records *store.Store, stored vault.Vault, value []byte) error {
	return stored.Remember(ctx, records.KnownValues(), secret.TrimValue(value))
}
