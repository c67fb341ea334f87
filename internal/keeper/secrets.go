package keeper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
	"github.com/litterbox-sandbox/litterbox/internal/secret"
	"github.com/litterbox-sandbox/litterbox/internal/secret/source"
	"github.com/litterbox-sandbox/litterbox/internal/secret/vault"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// SecretsFile says which secrets a sandbox has, in its directory. The engine
// writes it before each start. It holds placeholders and no value.
const SecretsFile = "secrets.json"

// OpLend takes values of variables from a client, for sources that are
// variables of its environment: KindStarted with the [Wanted] names, answered
// by one KindStdin frame with [Lent] → Empty. They are never written down, so
// each keeper must be lent them again.
const OpLend wire.Op = "keeper.lend"

// Secrets is the content of SecretsFile.
type Secrets struct {
	Bindings []secret.Binding `json:"bindings"`
	// Keys are the bindings that no configuration names: keys of the agents that
	// have worked in the sandbox.
	Keys  []secret.Spec `json:"keys,omitempty"`
	Home  string        `json:"home"`  // of the human, for sources that are files
	Vault string        `json:"vault"` // the directory of stored values
}

// Wanted are variables whose values the keeper asks for.
type Wanted struct {
	Names []string `json:"names"`
}

// Lent are values of variables, as bytes that can be wiped.
type Lent struct {
	Values map[string][]byte `json:"values"`
}

// ReadSecrets reads the secrets of the sandbox in dir; without a file there are
// none.
func ReadSecrets(dir string) (Secrets, error) {
	return readRecord[Secrets](filepath.Join(dir, SecretsFile), "secrets")
}

// readRecord reads one record of a sandbox; without a file the record is empty.
func readRecord[T any](path, what string) (record T, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return record, nil
	}
	if err == nil {
		err = seal.Decode(data, &record)
	}
	if err != nil {
		var none T
		return none, fault.Wrap(fault.Unavailable, err, "cannot read which %s the sandbox has", what)
	}
	return record, nil
}

// Env lists the variables that are the sources of secrets.
func (s Secrets) Env() []string {
	var names []string
	for _, b := range s.Bindings {
		if b.From.Kind == secret.Env && !slices.Contains(names, b.From.Name) {
			names = append(names, b.From.Name)
		}
	}
	return names
}

// Placeholder is what stands for a secret from the same source; empty when
// nothing does.
func (s Secrets) Placeholder(one secret.Spec) string {
	for _, b := range s.Bindings {
		if b.Name == one.Name && b.From.Equal(one.From) {
			return b.Placeholder
		}
	}
	return ""
}

// Inspects reports whether the sandbox must trust its own authority because of
// a secret.
func (s Secrets) Inspects() bool {
	set := secret.NewSet()
	for _, b := range s.Bindings {
		set.Bind(b, nil)
	}
	return set.State().Inspects()
}

// lent are the variables that clients have lent.
type lent struct {
	mu     sync.Mutex
	values map[string]*secret.Kept
}

// lookup implements source.Reader.Lookup.
func (l *lent) lookup(name string) ([]byte, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept, ok := l.values[name]
	if !ok {
		return nil, false
	}
	return slices.Clone(kept.Bytes()), true
}

// take keeps values, and wipes the originals.
func (l *lent) take(values map[string][]byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.values == nil {
		l.values = map[string]*secret.Kept{}
	}
	for name, value := range values {
		if old := l.values[name]; old != nil {
			old.Wipe()
		}
		l.values[name] = secret.Keep(value)
		clear(value)
	}
}

// openSecrets binds the secrets of the sandbox. When their record is damaged
// there are none, so that nothing is sent anywhere.
func (n *network) openSecrets() {
	all, err := ReadSecrets(n.dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "keeper:", err)
	}
	n.bind(all)
}

// bind binds secrets that are new or have a new placeholder.
func (n *network) bind(all Secrets) (changed bool) {
	reader := source.Reader{Home: all.Home, Vault: vault.Vault{Dir: all.Vault}, Lookup: n.lent.lookup}
	for _, b := range all.Bindings {
		if slices.ContainsFunc(n.secrets.State().Bound, func(known *secret.Bound) bool { return reflect.DeepEqual(known.Binding, b) }) {
			continue
		}
		n.secrets.Bind(b, func(ctx context.Context) ([]byte, error) {
			value, err := reader.Read(ctx, b.From)
			if err == nil {
				// It may be newer than the one read at the start.
				if err := reader.Vault.Remember(ctx, n.records.KnownValues(), secret.TrimValue(value)); err != nil {
					fmt.Fprintln(os.Stderr, "keeper:", err)
				}
			}
			return value, err
		})
		changed = true
	}
	return changed
}

// borrow takes variables from a client. Secrets added since the start are in
// force before it asks for them.
func (n *network) borrow(conn net.Conn) error {
	all, err := ReadSecrets(n.dir)
	if err != nil {
		return err
	}
	if n.bind(all) && n.secrets.State().Inspects() {
		if err := n.prepare(); err != nil {
			return err
		}
	}
	wanted := Wanted{Names: all.Env()}
	if err := wire.WriteJSON(conn, wire.KindStarted, wanted); err != nil {
		return err
	}
	kind, payload, err := wire.NewReader(conn).Next()
	if err != nil {
		return err
	}
	defer clear(payload)
	var given Lent
	if kind != wire.KindStdin || json.Unmarshal(payload, &given) != nil {
		return fault.New(fault.Invalid, "cannot understand which variables are lent")
	}
	for name, value := range given.Values {
		if !slices.Contains(wanted.Names, name) {
			clear(value)
			delete(given.Values, name)
		}
	}
	n.lent.take(given.Values)
	for _, b := range n.secrets.State().Bound {
		if _, ok := given.Values[b.From.Name]; ok && b.From.Kind == secret.Env {
			b.Forget()
		}
	}
	return nil
}
