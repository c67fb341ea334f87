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
	return e.Store.Redacts().And(inForms(callerOf(ctx).Secrets())...)
}

// secretsOf are those of the caller, and the values that the command was given.
func (r *ExecRequest) secretsOf(ctx context.Context, e *Engine) redact.Secrets {
	return e.secretsOf(ctx).And(inForms(redact.Values(r.Env))...)
}

// inForms are values in all the forms in which programs write them.
func inForms(values []string) (all []string) {
	for _, value := range values {
		secret.EachForm([]byte(value), func(form []byte) { all = append(all, string(form)) })
	}
	return all
}

// knowSecrets keeps the secrets of the caller's environment out of records that
// are written when the caller has gone.
func (e *Engine) knowSecrets(ctx context.Context) error {
	who := callerOf(ctx)
	values := who.Secrets()
	if len(values) == 0 {
		return nil
	}
	stored, err := vaultOf(who)
	if err != nil {
		return err
	}
	for _, value := range values {
		if err := know(ctx, e.Store, stored, []byte(value)); err != nil {
			return err
		}
	}
	return nil
}

// know keeps a value that was read out of records.
func know(ctx context.Context, records *store.Store, stored vault.Vault, value []byte) error {
	return stored.Remember(ctx, records.KnownValues(), secret.TrimValue(value))
}
